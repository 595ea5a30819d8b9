// SPDX-License-Identifier: GPL-2.0

//! Takes types and numbers from the project's C headers, so that there is one
//! definition of each: bindgen for what a compiler sees, and small scans for what it
//! does not: the requests of `kfi_shim.h`, whose numbers are macros, and the texts in
//! the comments of `kfi_errno.h`.

use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the C headers are, seen from this package.
const INCLUDE: &str = "../../../include";

/// The headers of kfabric that `wrapper.h` includes and that define flags or numbers.
const HEADERS: [&str; 7] = [
    "kfabric.h",
    "kfi_atomic.h",
    "kfi_domain.h",
    "kfi_endpoint.h",
    "kfi_eq.h",
    "kfi_tagged.h",
    "kfi_trigger.h",
];

/// The items of the headers that are wanted: the interface, and numbers.
const ITEMS: &str =
    "kfi_shim_.*|KFI_.*|kfi_(wait_obj|cntr_events|cq_format|ep_type|av_type|progress\
                     |threading|resource_mgmt|op_type|op|datatype|trigger_event|type|cq_wait_cond)";

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let include = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join(INCLUDE);

    requests(&include.join("uapi/kfi_shim.h"), &out)?;
    flags(&include, &out.join("flags.rs"))?;
    bindings(&include, &out)?;
    errno_table(&include.join("kfi_errno.h"), &out.join("errno_table.rs"))
}

/// Runs bindgen, the program: it is needed for the kernel modules anyway, and
/// as a library it would take longer to build than all of this workspace.
fn bindings(include: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=BINDGEN");
    let headers = HEADERS.iter().map(|name| include.join(name));
    let own = ["include", "wrapper.h"].map(PathBuf::from);
    for input in headers.chain([include.join("uapi/kfi_shim.h")]).chain(own) {
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
        .arg(out.join("bindings.rs"))
        .args(["--", "-Iinclude"])
        .arg(format!("-I{}", out.display()))
        .arg(format!("-I{}", include.display()))
        .status()
        .map_err(|error| format!("{}: {error}", bindgen.to_string_lossy()))?;
    if !status.success() {
        return Err(format!("{}: {status}", bindgen.to_string_lossy()).into());
    }
    Ok(())
}

/// Writes the requests that a header declares: `requests.h` with their numbers, as
/// bindgen does not evaluate `_IOWR()` but the compiler does, and `requests.rs` with
/// their types.
fn requests(header: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(header).map_err(|e| format!("{}: {e}", header.display()))?;
    let form = || format!("{}: its form has changed", header.display());

    // The members of a structure that all requests treat alike.
    let members = |structure: &str| -> Result<(Vec<&str>, bool), Box<dyn Error>> {
        let start = format!("\nstruct {structure} {{\n");
        let at = text.find(&start).ok_or_else(form)? + start.len();
        let body = text[at..].split("\n}").next().unwrap_or_default();
        let names = || {
            body.lines()
                .filter_map(|line| line.trim().strip_suffix(';')?.split_whitespace().nth(1))
        };
        let reserved = names().filter(|name| name.starts_with("reserved"));
        Ok((reserved.collect(), names().any(|name| name == "result")))
    };

    let mut numbers = String::new();
    let mut types = String::new();
    let mut table = String::new();
    for line in text.lines() {
        // #define KFI_SHIM_CLOSE _IOWR(KFI_SHIM_IOC_MAGIC, 0x01, struct kfi_shim_close)
        let Some((name, number)) = line
            .strip_prefix("#define KFI_SHIM_")
            .and_then(|rest| rest.split_once(char::is_whitespace))
            .filter(|(_, number)| number.contains("(KFI_SHIM_IOC_MAGIC,"))
        else {
            continue;
        };
        let structure = number
            .split_once("struct ")
            .and_then(|(_, rest)| rest.strip_suffix(')'))
            .ok_or_else(form)?;
        let (reserved, result) = members(structure)?;
        writeln!(
            numbers,
            "static const __u32 KFI_REQUEST_{name} = KFI_SHIM_{name};"
        )?;
        writeln!(
            types,
            "/// `KFI_SHIM_{name}`\npub const {name}: Request<uapi::{structure}> = \
             Request::new(uapi::KFI_REQUEST_{name});"
        )?;
        let offset = |member: &str| format!("core::mem::offset_of!(uapi::{structure}, {member})");
        let reserved: Vec<String> = reserved.into_iter().map(offset).collect();
        let result = if result {
            format!("Some({})", offset("result"))
        } else {
            "None".to_owned()
        };
        writeln!(
            table,
            "    super::Declared {{ name: {name:?}, number: {name}.number(), \
             reserved: &[{}], result: {result} }},",
            reserved.join(", ")
        )?;
    }
    if table.lines().count() < 80 {
        return Err(form().into());
    }
    writeln!(
        types,
        "/// All of them.\npub const REQUESTS: &[super::Declared] = &[\n{table}];"
    )?;
    fs::write(out.join("requests.h"), numbers)?;
    fs::write(out.join("requests.rs"), types)?;
    Ok(())
}

/// Writes constants of 64 bits, whatever the headers make of them, for the flags: what
/// is defined as a bit, or as another name of one.
fn flags(include: &Path, output: &Path) -> Result<(), Box<dyn Error>> {
    let mut names: Vec<String> = Vec::new();
    let mut constants = String::new();
    for header in HEADERS {
        let header = include.join(header);
        let text = fs::read_to_string(&header).map_err(|e| format!("{}: {e}", header.display()))?;
        for line in text.lines() {
            // #define KFI_MSG (1ULL << 1) /* untagged messages */
            let Some((name, rest)) = line
                .strip_prefix("#define KFI_")
                .and_then(|rest| rest.split_once(char::is_whitespace))
            else {
                continue;
            };
            let value = rest.split("/*").next().unwrap_or_default().trim();
            let bit = value.starts_with("(1ULL << ") || value.starts_with("(1 << ");
            let other = value.strip_prefix("KFI_");
            if !bit && !other.is_some_and(|other| names.iter().any(|name| name == other)) {
                continue;
            }
            writeln!(
                constants,
                "/// `KFI_{name}`\npub const {name}: u64 = uapi::KFI_{name} as u64;"
            )?;
            names.push(name.to_owned());
        }
    }
    if names.len() < 60 {
        return Err("flags: their form has changed".into());
    }
    fs::write(output, constants)?;
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
