// SPDX-License-Identifier: GPL-2.0

//! Takes types and numbers from the project's C headers, so that there is one
//! definition of each: bindgen for what a compiler sees, and a small scan of
//! `kfi_errno.h` for the texts that are in its comments.

use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the C headers are, seen from this package.
const INCLUDE: &str = "../../../include";

/// What of the headers is wanted: the interface, and numbers.
const ITEMS: &str =
    "kfi_shim_.*|KFI_.*|kfi_(wait_obj|cntr_events|cq_format|ep_type|av_type|progress\
                     |threading|resource_mgmt|op_type|op|datatype|trigger_event|type|cq_wait_cond)";

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let include = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join(INCLUDE);

    bindings(&include, &out.join("bindings.rs"))?;
    errno_table(&include.join("kfi_errno.h"), &out.join("errno_table.rs"))
}

/// Runs bindgen, the program: it is needed for the kernel modules anyway, and
/// as a library it would take longer to build than all of this workspace.
fn bindings(include: &Path, output: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=BINDGEN");
    for input in [
        include.join("kfabric.h"),
        include.join("kfi_atomic.h"),
        include.join("kfi_domain.h"),
        include.join("kfi_endpoint.h"),
        include.join("kfi_eq.h"),
        include.join("kfi_tagged.h"),
        include.join("kfi_trigger.h"),
        include.join("uapi/kfi_shim.h"),
        PathBuf::from("include"),
        PathBuf::from("wrapper.h"),
    ] {
        println!("cargo::rerun-if-changed={}", input.display());
    }

    let bindgen = env::var_os("BINDGEN").unwrap_or_else(|| "bindgen".into());
    let status = Command::new(&bindgen)
        .arg("wrapper.h")
        .args(["--allowlist-item", ITEMS])
        .args([
            "--no-prepend-enum-name",
            "--no-layout-tests",
            "--no-doc-comments",
        ])
        .args(["--use-core", "--with-derive-partialeq"])
        .args(["--rust-target", "1.77", "--formatter", "none"])
        .args([
            "--with-derive-custom-struct",
            "kfi_shim_.*=::zerocopy::FromBytes,::zerocopy::Immutable,::zerocopy::IntoBytes",
        ])
        .arg("--output")
        .arg(output)
        .args(["--", "-Iinclude"])
        .arg(format!("-I{}", include.display()))
        .status()
        .map_err(|error| format!("{}: {error}", bindgen.to_string_lossy()))?;
    if !status.success() {
        return Err(format!("{}: {status}", bindgen.to_string_lossy()).into());
    }
    Ok(())
}

/// Writes a Rust table of (number, name, text), in the order of the header.
fn errno_table(header: &Path, output: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", header.display());
    let text = fs::read_to_string(header).map_err(|e| format!("{}: {e}", header.display()))?;

    let mut entries: Vec<(String, String)> = Vec::new();
    // The text of a kernel-doc member may go on in the next line.
    let mut in_member = false;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("#define KFI_E") {
            // #define KFI_EPERM EPERM /* operation not permitted */
            if let Some((names, comment)) = rest.split_once("/*") {
                let name = names.split_whitespace().next().unwrap_or_default();
                let comment = comment.trim_end().trim_end_matches("*/").trim();
                entries.push((format!("KFI_E{name}"), comment.to_owned()));
            }
            in_member = false;
        } else if let Some(rest) = line.strip_prefix(" * @") {
            //  * @KFI_EOTHER: unspecified error
            in_member = false;
            if let Some((name, comment)) = rest.split_once(": ") {
                if name.starts_with("KFI_E") && !name.ends_with("_MAX") {
                    entries.push((name.to_owned(), comment.trim().to_owned()));
                    in_member = true;
                }
            }
        } else if in_member {
            match line.strip_prefix(" *   ") {
                Some(rest) => {
                    if let Some((_, comment)) = entries.last_mut() {
                        comment.push(' ');
                        comment.push_str(rest.trim());
                    }
                }
                None => in_member = false,
            }
        }
    }
    if entries.len() < 100 {
        return Err(format!("{}: its form has changed", header.display()).into());
    }

    let mut table = String::from("&[\n");
    for (name, comment) in &entries {
        writeln!(table, "    (uapi::{name} as i32, {name:?}, {comment:?}),")?;
    }
    table.push(']');
    fs::write(output, table)?;
    Ok(())
}
