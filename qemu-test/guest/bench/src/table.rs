// SPDX-License-Identifier: GPL-2.0

//! Tables.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::figure::{Figure, Results};
use crate::targets::{Target, TARGETS};
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
pub(crate) fn spread([low, high]: [f64; 2]) -> String {
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

fn bandwidth(figure: &Figure) -> Option<String> {
    let median = figure.median.filter(|_| figure.item == "bandwidth")?;
    Some(format!(
        "{} MB/s",
        number(figure.size as f64 / median * 1000.0)
    ))
}

/// What makes figures of two CPUs doubtful: they have to run at the same time.
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
    for figure in &results.figures {
        if figure.item != item {
            item = &figure.item;
            let _ = writeln!(text, "\n{item}");
        }
        let mut notes = figure.quartiles.map(spread).unwrap_or_default();
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

/// A cell of the table of targets, and whether the target is met.
fn cell(target: &Target, results: &Results) -> (String, Option<bool>) {
    let Some((spread, ..)) = target.measured(results) else {
        return ("-".to_owned(), None);
    };
    (
        number(spread.median),
        target.most_of(results).map(|most| spread.median <= most),
    )
}

/// The targets, for people.
fn ratios(results: &Results) -> String {
    let mut text = String::new();
    for target in &TARGETS {
        let Some((measured, over, under)) = target.measured(results) else {
            let _ = writeln!(text, "    not measured: {}", target.what);
            continue;
        };
        let (most, verdict) = match target.most_of(results) {
            None => ("any".to_owned(), "    "),
            Some(most) if measured.median <= most => (number(most), "met "),
            Some(most) => (number(most), "MISS"),
        };
        let of = under.map_or_else(String::new, |under| {
            format!(" = {} / {}", value(over), value(under))
        });
        let _ = writeln!(
            text,
            "{verdict} {:>8} of {most:<5} {:20} {}{of}",
            number(measured.median),
            spread([measured.low, measured.high]),
            target.what,
        );
    }
    text
}

/// The table for Documentation/benchmarks.md.
fn document(results: &Results, qemu: Option<&Results>) -> String {
    let mut text = String::from("| what | at most | measured |");
    if qemu.is_some() {
        text += " in QEMU, at most | measured |";
    }
    text += "\n| --- | ---: | ---: |";
    if qemu.is_some() {
        text += " ---: | ---: |";
    }
    text.push('\n');
    let mark = |(cell, met): (String, Option<bool>)| match met {
        Some(false) => format!("**{cell}**"),
        _ => cell,
    };
    for target in &TARGETS {
        let most = |results| target.most_of(results).map_or("-".to_owned(), number);
        let _ = write!(
            text,
            "| {} | {} | {} |",
            target.what,
            most(results),
            mark(cell(target, results))
        );
        if let Some(qemu) = qemu {
            let _ = write!(text, " {} | {} |", most(qemu), mark(cell(target, qemu)));
        }
        text.push('\n');
    }
    if let Some(machine) = &results.machine {
        let rounds = results
            .figures
            .first()
            .map_or(0, |figure| figure.values.len());
        let _ = write!(
            text,
            "\nMedians of {rounds} rounds on {} x {}, of which other work took its share (load {} \
             to {}). What is missed is bold.\n",
            machine.processors,
            machine.processor,
            number(machine.load[0]),
            number(machine.load[1]),
        );
        if !doubts(results).is_empty() {
            text += "The host was too busy for two CPUs: that figure does not count.\n";
        }
    }
    text
}

/// Writes `table.txt` and `ratios.md`, and shows the ratios.
pub(crate) fn write(results: &Results, qemu: Option<&Results>, folder: &Path) -> Result<(), Error> {
    let ratios = ratios(results) + &doubts(results);
    let tables = [
        ("table.txt", format!("{ratios}{}", all(results))),
        ("ratios.md", document(results, qemu)),
    ];
    fs::create_dir_all(folder).map_err(|error| Error::File(folder.display().to_string(), error))?;
    for (name, text) in tables {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| Error::File(path.display().to_string(), error))?;
    }
    print!("\n{ratios}");
    Ok(())
}

const BEGIN: &str = "<!-- bench: begin -->\n";
const END: &str = "<!-- bench: end -->";

/// Replaces what stands between the marks.
fn replace(text: &str, table: &str) -> Option<String> {
    let begin = text.find(BEGIN)? + BEGIN.len();
    let end = begin + text[begin..].find(END)?;
    Some(format!("{}{table}{}", &text[..begin], &text[end..]))
}

/// Replaces the table in a file.
pub(crate) fn insert(table: &Path, file: &Path) -> Result<(), Error> {
    let read = |path: &Path| {
        fs::read_to_string(path).map_err(|error| Error::File(path.display().to_string(), error))
    };
    let name = file.display().to_string();
    let text = replace(&read(file)?, &read(table)?)
        .ok_or_else(|| Error::Results(format!("{name}: no place for the table")))?;
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
        let text = format!("a\n{BEGIN}old\n{END}\nb\n");
        let new = format!("a\n{BEGIN}new\n{END}\nb\n");
        assert_eq!(replace(&text, "new\n"), Some(new));
        assert_eq!(replace("nothing", "new\n"), None);
    }
}
