// SPDX-License-Identifier: GPL-2.0

//! Tables.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::iter;
use std::path::Path;

use crate::figure::{Figure, Results};
use crate::targets::{Bound, Target, TARGETS, TCP_TARGETS};
use crate::Error;

/// A number with three digits that matter.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position) % 3 == 0 && digit.is_ascii_digit() {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// Two quartiles.
pub(crate) fn range([low, high]: [f64; 2]) -> String {
    format!("({} - {})", number(low), number(high))
}

/// A size as people write it.
fn size(figure: &Figure) -> String {
    if figure.size == 0 {
        return String::new();
    }
    number(figure.size as f64)
}

fn value(figure: &Figure) -> String {
    let Some(median) = figure.median else {
        return format!("error {}", figure.error.unwrap_or_default());
    };
    format!("{} {}", number(median), figure.unit)
}

/// Items that are measured to know the bandwidth.
const BANDWIDTH: [&str; 2] = ["bandwidth", "TCP, stream"];

fn bandwidth(figure: &Figure) -> Option<String> {
    let counts = BANDWIDTH.contains(&figure.item.as_str());
    let median = figure.median.filter(|_| counts)?;
    Some(format!(
        "{} MB/s",
        number(figure.size as f64 / median * 1000.0)
    ))
}

/// Reasons to doubt figures of two CPUs: they have to run at the same time.
fn doubts(results: &Results) -> String {
    let two = |design| results.get("add, two CPUs", design, 0)?.median;
    let one = results
        .get("add", "atomic", 0)
        .and_then(|figure| figure.median);
    match (one, two("atomic apart"), two("atomic")) {
        (Some(one), Some(apart), _) if apart > 1.25 * one => {
            "doubtful: two CPUs: on lines of their own they are slower than one\n".to_owned()
        }
        (_, Some(apart), Some(together)) if together < 1.5 * apart => {
            "doubtful: two CPUs: they did not run at the same time\n".to_owned()
        }
        _ => String::new(),
    }
}

/// Every figure, for people.
fn all(results: &Results) -> String {
    let mut text = String::new();
    let mut item = "";
    for figure in results.each() {
        if figure.item != item {
            item = &figure.item;
            let _ = writeln!(text, "\n{item}");
        }
        let mut notes = figure.quartiles.map(range).unwrap_or_default();
        if figure.pass != 0 {
            notes += "  measured again";
        }
        if let Some(bandwidth) = bandwidth(figure) {
            notes += &format!("  {bandwidth}");
        }
        if let (Some(p50), Some(p99)) = (figure.p50, figure.p99) {
            notes += &format!("  p50 {} p99 {}", number(p50 as f64), number(p99 as f64));
        }
        let _ = writeln!(
            text,
            "    {:24} {:>9} {:>16}  {notes}",
            figure.design,
            size(figure),
            value(figure)
        );
    }
    text
}

/// The result of a run for a target.
pub(crate) struct Cell {
    /// The bound that it has to keep to.
    pub(crate) bound: String,
    /// Its value.
    pub(crate) measured: String,
    /// How far its rounds are apart.
    pub(crate) spread: String,
    /// It does not.
    pub(crate) missed: bool,
}

impl Cell {
    /// Of the results of a run.
    pub(crate) fn new(target: &Target, results: &Results) -> Self {
        let bound = target.bound_of(results);
        let measured = target.measured(results);
        let median = measured.as_ref().map(|measured| measured.spread.median);
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        Self {
            bound: bound.to_string(),
            measured: or_none(median.map(number)),
            spread: or_none(measured.map(|measured| measured.steadiness())),
            missed: median.is_some_and(|median| bound.is_missed(median)),
        }
    }
}

/// The targets, for people.
fn ratios(results: &Results) -> String {
    let mut text = String::new();
    for target in TARGETS.iter().chain(&TCP_TARGETS) {
        let Some(measured) = target.measured(results) else {
            let _ = writeln!(text, "    not measured: {}", target.what);
            continue;
        };
        let spread = measured.spread;
        let bound = target.bound_of(results);
        let verdict = match bound {
            Bound::Any => "    ",
            bound if bound.is_missed(spread.median) => "MISS",
            _ => "met ",
        };
        let of = measured.under.map_or_else(String::new, |under| {
            format!(" = {} / {}", value(measured.over), value(under))
        });
        let _ = writeln!(
            text,
            "{verdict} {:>8} {:8} {:20} {:16} {}{of}",
            number(spread.median),
            bound.to_string(),
            range([spread.low, spread.high]),
            measured.steadiness(),
            target.what,
        );
    }
    if let Some(machine) = &results.machine {
        let _ = writeln!(text, "    {}", machine.busy());
    }
    text
}

/// A table for Documentation/benchmarks.md.
fn document(targets: &[Target], results: &Results, qemu: Option<&Results>) -> String {
    let mut text = String::from("| what | target | measured | spread |");
    if qemu.is_some() {
        text += " in QEMU, target | measured | spread |";
    }
    text += "\n| --- | ---: | ---: | ---: |";
    if qemu.is_some() {
        text += " ---: | ---: | ---: |";
    }
    text.push('\n');
    for target in targets {
        let _ = write!(text, "| {} |", target.what);
        for results in iter::once(results).chain(qemu) {
            let cell = Cell::new(target, results);
            let mark = if cell.missed { "**" } else { "" };
            let _ = write!(
                text,
                " {} | {mark}{}{mark} | {} |",
                cell.bound, cell.measured, cell.spread
            );
        }
        text.push('\n');
    }
    let (under, doubt) = circumstances(results);
    if !under.is_empty() {
        let _ = write!(text, "\n{under} Missed targets are bold.\n{doubt}");
    }
    text
}

/// Under which circumstances it was measured, and what of it does not count for that; both may be empty.
pub(crate) fn circumstances(results: &Results) -> (String, &'static str) {
    let Some(machine) = &results.machine else {
        return (String::new(), "");
    };
    let rounds = results
        .figures
        .iter()
        .map(|figure| figure.values.len())
        .max()
        .unwrap_or_default();
    let text = format!(
        "Medians of {rounds} rounds on {} x {}. How busy it was: {}.",
        machine.processors,
        machine.processor,
        machine.busy(),
    );
    if doubts(results).is_empty() {
        return (text, "");
    }
    (
        text,
        "The host was too busy for two CPUs: what both of them did does not count.\n",
    )
}

/// Returns whether a run was asked for all of a table, and has measured some of it.
fn is_whole(targets: &[Target], results: &Results) -> bool {
    targets.iter().all(|target| target.is_asked(results))
        && targets
            .iter()
            .any(|target| target.measured(results).is_some())
}

/// Writes `table.txt`, and each of `ratios.md` and `tcp.md` of which all was asked for; shows the ratios.
pub(crate) fn write(results: &Results, qemu: Option<&Results>, folder: &Path) -> Result<(), Error> {
    let ratios = ratios(results) + &doubts(results);
    let failed = |path: &Path, error| Error::File(path.display().to_string(), error);
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let path = folder.join("table.txt");
    fs::write(&path, format!("{ratios}{}", all(results))).map_err(|error| failed(&path, error))?;
    for (name, targets) in [(RATIOS, &TARGETS[..]), (TCP, &TCP_TARGETS[..])] {
        let path = folder.join(name);
        let written = if is_whole(targets, results) {
            let qemu = qemu.filter(|qemu| is_whole(targets, qemu));
            fs::write(&path, document(targets, results, qemu))
        } else {
            // The page of an earlier run is not of these results.
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        };
        written.map_err(|error| failed(&path, error))?;
    }
    print!("\n{ratios}");
    Ok(())
}

/// The files of tables for Documentation/benchmarks.md.
const RATIOS: &str = "ratios.md";
const TCP: &str = "tcp.md";
/// The names of their places there.
const PLACES: [(&str, &str); 2] = [(RATIOS, "bench"), (TCP, "bench over TCP")];

/// Replaces what stands between the marks of a place.
fn replace(text: &str, place: &str, table: &str) -> Option<String> {
    let mark = format!("<!-- {place}: begin -->\n");
    let begin = text.find(&mark)? + mark.len();
    let end = begin + text[begin..].find(&format!("<!-- {place}: end -->"))?;
    Some(format!("{}{table}{}", &text[..begin], &text[end..]))
}

/// Replaces the tables in a file by those in a folder; one that is not there is left as it is.
pub(crate) fn insert(folder: &Path, file: &Path) -> Result<(), Error> {
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|error| Error::File(path.display().to_string(), error))
    };
    let name = file.display().to_string();
    let mut text = read(file)?;
    let (there, missing): (Vec<_>, Vec<_>) = PLACES
        .into_iter()
        .partition(|(table, _)| folder.join(table).exists());
    if there.is_empty() {
        let folder = folder.display();
        return Err(Error::Results(format!(
            "{folder}: no run in user-mode Linux was asked for all of a table"
        )));
    }
    for (table, place) in there {
        text = replace(&text, place, &read(&folder.join(table))?)
            .ok_or_else(|| Error::Results(format!("{name}: no place for {table}")))?;
    }
    for (table, _) in missing {
        println!("{name}: left as it was: {table}, of which the last run was not asked for all");
    }
    fs::write(file, text).map_err(|error| Error::File(name, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(number(1.234), "1.23");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(1_234_567.8), "1,234,568");
        assert_eq!(number(100.0), "100");
    }

    #[test]
    fn tables_are_replaced() {
        let places = |first: &str, second: &str| {
            format!(
                "a\n<!-- bench: begin -->\n{first}<!-- bench: end -->\nb\n\
                 <!-- bench over TCP: begin -->\n{second}<!-- bench over TCP: end -->\nc\n"
            )
        };
        let text = places("old\n", "old\n");
        let text = replace(&text, "bench", "new\n").unwrap();
        assert_eq!(text, places("new\n", "old\n"));
        let text = replace(&text, "bench over TCP", "1\n2\n").unwrap();
        assert_eq!(text, places("new\n", "1\n2\n"));
        assert_eq!(replace("nothing", "bench", "new\n"), None);
    }

    /// There is a place for each of them, and a line for each ratio.
    #[test]
    fn tables_have_places() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../Documentation/benchmarks.md");
        let text = fs::read_to_string(file).unwrap();
        for (_, place) in PLACES {
            assert!(replace(&text, place, "").is_some(), "{place}");
        }
        for target in TARGETS.iter().chain(&TCP_TARGETS) {
            assert!(
                text.contains(&format!("\n| {} | ", target.what)),
                "{}",
                target.what
            );
        }
    }

    /// A value that misses its bound is bold, and the spread stands beside it.
    #[test]
    fn spread_stands_in_the_table() {
        let line = |design: &str, values: &str| {
            let text = format!(
                r#"{{"item":"TCP, round trip","design":"{design}","size":8,"unit":"ns","values":{values}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let mut results = Results::default();
        results.add(line("kfi_soft", "[1.0,2.0,3.0]"));
        results.add(line("socket", "[1.0,1.0,1.0]"));
        let text = document(&TCP_TARGETS, &results, None);
        assert!(text.contains("| 8-byte round trip / bare socket | ≤ 1.40 | **2.00** | 50 % |\n"));
        let text = document(&TCP_TARGETS, &results, Some(&results));
        assert!(text.contains("| **2.00** | 50 % | ≤ 1.40 | **2.00** | 50 % |\n"));
        let told = ratios(&results);
        assert!(told.contains("MISS     2.00 ≤ 1.40   (1.50 - 2.50)"));
        assert!(told.contains(" 50 % "));
    }

    #[test]
    fn how_busy_it_was_stands_under_the_table() {
        let mut results = Results::default();
        let text = r#"{"vehicle":"uml","processor":"P","processors":2,"load":[1.0,1.5],
            "host":{"busy":0.5,"steal":0.25},"guest":{"busy":0.75,"steal":0.0}}"#;
        results.add(serde_json::from_str(text).unwrap());
        let text = document(&TCP_TARGETS, &results, None);
        assert!(text.contains(
            "host: load 1.00 to 1.50, CPUs busy 50 %, taken away 25 %; guest: CPUs busy 75 %, \
             taken away 0 %."
        ));
    }

    /// A run that was asked for a part of a table does not replace one that has all.
    #[test]
    fn a_table_is_written_as_a_whole() {
        let mut results = Results::default();
        for line in [
            r#"{"asked":["tcp","mesh"],"items":[]}"#,
            r#"{"item":"TCP, round trip","design":"kfi_soft","size":8,"unit":"ns","values":[3.0]}"#,
            r#"{"item":"TCP, round trip","design":"socket","size":8,"unit":"ns","values":[1.0]}"#,
        ] {
            results.add(serde_json::from_str(line).unwrap());
        }
        assert!(is_whole(&TCP_TARGETS, &results));
        assert!(!is_whole(&TARGETS, &results));
        results.asked.items.push("round trip".to_owned());
        assert!(!is_whole(&TCP_TARGETS, &results));
        // It was asked for all, and has not come to that.
        assert!(!is_whole(&TARGETS, &Results::default()));
    }

    #[test]
    fn what_was_not_measured_has_its_line() {
        let results = Results::default();
        let text = document(&TCP_TARGETS, &results, None);
        assert_eq!(text.lines().count(), 2 + TCP_TARGETS.len());
        assert!(text.contains("| 8-byte round trip / bare socket | ≤ 1.40 | - | - |\n"));
        assert!(text.contains("| memory of an idle peer, in bytes | ≤ 65,536 | - | - |\n"));
        assert!(text.contains("| memory of an idle peer / two bare sockets | - | - | - |\n"));
    }
}
