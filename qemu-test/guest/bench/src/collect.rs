// SPDX-License-Identifier: GPL-2.0

//! Makes a file of results of what a guest prints.

use std::fs;
use std::io::{self, BufRead, Write};
use std::iter;
use std::path::Path;

use crate::busy::{Activity, Since};
use crate::figure::{Figure, Line, Machine, Results};
use crate::table::{number, range};
use crate::targets::unmeasured;
use crate::Error;

/// The average number of processes that wanted to run in the last minute.
fn load() -> f64 {
    fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .unwrap_or_default()
}

/// The name of the processor, and how many there are.
fn processor() -> (String, usize) {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut names = text
        .lines()
        .filter_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map(|(_, name)| name.to_owned());
    let name = names.next();
    let count = names.count() + usize::from(name.is_some());
    (name.unwrap_or_default(), count)
}

/// The output of a guest.
#[derive(Default)]
struct Collected {
    /// All of a file of results but for the machine.
    lines: Vec<Line>,
    /// The last line has come.
    complete: bool,
    /// How the virtual machine ended, if that was said.
    status: Option<i32>,
    /// How busy the guest was, if that was said.
    guest: Option<Activity>,
}

impl Collected {
    /// Reads until the input ends, and shows what people want to see.
    fn read(input: impl BufRead, out: &mut impl Write) -> io::Result<Self> {
        let mut collected = Self::default();
        for text in input.lines() {
            let text = text?;
            match serde_json::from_str(&text) {
                Ok(Line::Figure(mut figure)) => {
                    figure.complete();
                    writeln!(out, "{}", shown(&figure))?;
                    collected.lines.push(Line::Figure(figure));
                }
                Ok(Line::Missing(missing)) => {
                    writeln!(out, "not measured: {}: {}", missing.missing, missing.reason)?;
                    collected.lines.push(Line::Missing(missing));
                }
                Ok(line @ Line::Asked(_)) => collected.lines.push(line),
                Ok(Line::End { .. }) => collected.complete = true,
                Ok(Line::Guest { guest }) => collected.guest = Some(guest),
                Ok(Line::Status { status }) => collected.status = Some(status),
                Ok(Line::Machine(_)) => {}
                Err(_) => writeln!(out, "{text}")?,
            }
        }
        Ok(collected)
    }

    /// Reasons why it is not the run that was asked for; a line each.
    fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        if let Some(status) = self.status.filter(|&status| status != 0) {
            failures.push(format!("the virtual machine ended with status {status}"));
        }
        if !self.complete {
            failures.push("the run did not end".to_owned());
        }
        let mut results = Results::default();
        for line in &self.lines {
            results.add(line.clone());
        }
        let unmeasured = unmeasured(&results);
        failures.extend(unmeasured.iter().map(|row| format!("not measured: {row}")));
        if failures.is_empty() && results.figures.is_empty() {
            failures.push("nothing was measured: no item has such a name".to_owned());
        }
        failures
    }
}

/// A figure as it is shown when it comes.
fn shown(figure: &Figure) -> String {
    let mut said = match (figure.error, figure.quartiles) {
        (Some(error), _) => format!("error {error}"),
        (None, Some(quartiles)) => format!(
            "{} {} {}",
            number(figure.median.unwrap_or_default()),
            figure.unit,
            range(quartiles)
        ),
        (None, None) => "nothing".to_owned(),
    };
    if let (Some(p50), Some(p99)) = (figure.p50, figure.p99) {
        said += &format!("  p50 {p50} p99 {p99}");
    }
    if figure.pass != 0 {
        said += "  again";
    }
    format!(
        "{:26} {:26} {:>8}  {said}",
        figure.item, figure.design, figure.size
    )
}

/// Reads until the input ends, and writes what there is in any case; fails if that is not all that was
/// asked for.
pub(crate) fn collect(vehicle: &str, output: &Path) -> Result<(), Error> {
    let failed = |error| Error::File(output.display().to_string(), error);
    let (processor, processors) = processor();
    let mut machine = Machine {
        vehicle: vehicle.to_owned(),
        processor,
        processors,
        load: [load(); 2],
        host: None,
        guest: None,
    };
    let begin = Since::now();
    let collected = Collected::read(io::stdin().lock(), &mut io::stdout())
        .map_err(|error| Error::File("input".to_owned(), error))?;
    machine.load[1] = load();
    machine.host = begin.until_now();
    machine.guest = collected.guest;
    println!("{}", machine.busy());
    let mut text = String::new();
    for line in iter::once(&Line::Machine(machine)).chain(&collected.lines) {
        text += &serde_json::to_string(line).map_err(|error| failed(error.into()))?;
        text.push('\n');
    }
    if let Some(folder) = output.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(output, text).map_err(failed)?;
    let failures = collected.failures();
    if failures.is_empty() {
        return Ok(());
    }
    Err(Error::Results(failures.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The failures of a run of these lines.
    fn failures(lines: &[&str]) -> Vec<String> {
        let mut shown = Vec::new();
        let collected = Collected::read(lines.join("\n").as_bytes(), &mut shown).unwrap();
        collected.failures()
    }

    const ASKED: &str = r#"{"asked":["node"],"items":["memory, pending"]}"#;
    const MEASURED: &str = r#"{"item":"memory, pending operation","design":"kfi_soft","size":100000,"unit":"bytes","values":[144.0]}"#;
    const FAILED: &str = r#"{"item":"memory, pending operation","design":"kfi_soft","size":100000,"unit":"bytes","error":-28}"#;
    const OTHER: &str =
        r#"{"item":"memory, counter","design":"kfi_soft","size":1000,"unit":"bytes","error":-12}"#;
    const END: &str = r#"{"end":true}"#;
    const WELL: &str = r#"{"status":0}"#;

    #[test]
    fn all_was_measured() {
        assert_eq!(failures(&[ASKED, "text", MEASURED, END, WELL]), [""; 0]);
    }

    #[test]
    fn a_row_that_is_missing_is_named() {
        // An error, with its reason; nothing at all.
        let told = failures(&[ASKED, FAILED, END, WELL]);
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("not measured: memory of a pending counter operation"));
        assert!(told[0].contains("No space left on device"));
        let told = failures(&[ASKED, END, WELL]);
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("the module has not told it"));
        // A figure without a row is named by its own name.
        let told = failures(&[ASKED, MEASURED, OTHER, END, WELL]);
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("not measured: memory, counter, kfi_soft, 1000: "));
    }

    #[test]
    fn a_set_that_is_missing_has_its_reason() {
        let asked = r#"{"asked":["tcp"],"items":[]}"#;
        let missing = r#"{"missing":"tcp","reason":"the kernel has no TCP"}"#;
        let told = failures(&[asked, missing, END, WELL]);
        assert!(told.len() > 1);
        assert!(told
            .iter()
            .all(|row| row.ends_with(": the kernel has no TCP")));
        // All of it, if nothing else was said.
        assert!(failures(&[END]).len() > told.len());
    }

    #[test]
    fn what_was_measured_again_is_kept() {
        let again = MEASURED.replace("\"values\"", "\"pass\":1,\"values\"");
        let guest = r#"{"guest":{"busy":0.5,"steal":0.0}}"#;
        let input = [ASKED, MEASURED, &again, guest, END].join("\n");
        let mut shown = Vec::new();
        let collected = Collected::read(input.as_bytes(), &mut shown).unwrap();
        assert_eq!(collected.failures(), [""; 0]);
        assert!((collected.guest.unwrap().busy - 0.5).abs() < 1e-9);
        let passes: Vec<_> = collected
            .lines
            .iter()
            .filter_map(|line| match line {
                Line::Figure(figure) => Some(figure.pass),
                _ => None,
            })
            .collect();
        assert_eq!(passes, [0, 1]);
        let shown = String::from_utf8(shown).unwrap();
        assert_eq!(shown.matches("  again").count(), 1);
    }

    #[test]
    fn a_run_that_measured_nothing_fails() {
        let asked = r#"{"asked":["node"],"items":["no such item"]}"#;
        let told = failures(&[asked, END, WELL]);
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("nothing was measured"));
    }

    #[test]
    fn a_run_that_went_wrong_fails() {
        assert_eq!(failures(&[ASKED, MEASURED, WELL]), ["the run did not end"]);
        assert_eq!(
            failures(&[ASKED, MEASURED, END, r#"{"status":1}"#]),
            ["the virtual machine ended with status 1"]
        );
    }
}
