// SPDX-License-Identifier: GPL-2.0

//! `kfi stat`

use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value};

use crate::output::{print_json, Problem};

/// Show who is registered, what is open and what is pending
///
/// Prints what the modules show in debugfs: providers and fabrics of the core;
/// domains, counters, operations that wait for counters, and peers over a
/// network, of the software provider. Needs no device.
///
/// Exit status: 0 if there is anything to show.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Where debugfs is mounted
    #[arg(long, value_name = "FOLDER", default_value = "/sys/kernel/debug")]
    debugfs: PathBuf,

    /// As JSON
    #[arg(long)]
    json: bool,
}

/// The tables there may be: the name of each, and the file.
const FILES: [(&str, &str); 6] = [
    ("providers", "kfabric/providers"),
    ("fabrics", "kfabric/fabrics"),
    ("domains", "kfi_soft/domains"),
    ("counters", "kfi_soft/counters"),
    ("pending", "kfi_soft/pending"),
    ("peers", "kfi_soft/peers"),
];

/// A file: the names of the columns, and lines of words.
///
/// A line may be shorter; `...` is its last word if more of its kind is left out.
#[derive(Debug, PartialEq)]
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(text: &str) -> Self {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let mut lines = text.lines();
        Self {
            columns: lines.next().map(words).unwrap_or_default(),
            rows: lines.map(words).collect(),
        }
    }

    /// Numbers are numbers.
    fn json(&self) -> Value {
        let value = |word: &String| match word.parse::<u64>() {
            Ok(number) => Value::from(number),
            Err(_) => Value::from(word.as_str()),
        };
        let rows = self.rows.iter().map(|row| {
            let mut object = Map::new();
            for (column, word) in self.columns.iter().zip(row) {
                if word == "..." {
                    object.insert("more".to_owned(), Value::Bool(true));
                } else {
                    object.insert(column.clone(), value(word));
                }
            }
            Value::Object(object)
        });
        rows.collect()
    }

    /// In columns, numbers to the right.
    fn text(&self, out: &mut impl Write) -> io::Result<()> {
        let widths: Vec<_> = (0..self.columns.len())
            .map(|column| {
                let all = std::iter::once(&self.columns).chain(&self.rows);
                let lengths = all.filter_map(|row| row.get(column)).map(String::len);
                lengths.max().unwrap_or(0)
            })
            .collect();
        let is_number = |column: usize| {
            let mut cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.all(|word| word == "..." || word.parse::<u64>().is_ok())
        };
        for row in std::iter::once(&self.columns).chain(&self.rows) {
            let mut line = String::new();
            for (column, (word, width)) in row.iter().zip(&widths).enumerate() {
                // Writing to a text does not fail.
                let _ = if is_number(column) {
                    write!(line, "  {word:>width$}")
                } else {
                    write!(line, "  {word:<width$}")
                };
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Reads what there is; a module that is not loaded shows nothing.
fn read(root: &Path) -> Result<Vec<(&'static str, Table)>, Problem> {
    let mut tables = Vec::new();
    for (name, file) in FILES {
        match fs::read_to_string(root.join(file)) {
            // There are no peers without a network.
            Ok(text) if text.is_empty() => (),
            Ok(text) => tables.push((name, Table::new(&text))),
            Err(error) if error.kind() == ErrorKind::NotFound => (),
            Err(error) => {
                let path = root.join(file);
                return Err(Problem::Nothing(format!("{}: {error}", path.display())));
            }
        }
    }
    if tables.is_empty() {
        return Err(Problem::Nothing(format!(
            "nothing of kfabric in {}; is kfabric.ko loaded, and debugfs mounted?",
            root.display()
        )));
    }
    Ok(tables)
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Problem> {
    let tables = read(&arguments.debugfs)?;
    if arguments.json {
        let all = tables.iter().map(|(name, table)| (*name, table.json()));
        let all: Map<_, _> = all.map(|(name, table)| (name.to_owned(), table)).collect();
        print_json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = io::stdout().lock();
    for (index, (name, table)) in tables.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        if table.rows.is_empty() {
            writeln!(out, "{name}: none")?;
        } else {
            writeln!(out, "{name}:")?;
            table.text(&mut out)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: &str = "counter kind threshold\n1 classic 10\n12 deferred ...\n";

    #[test]
    fn values() {
        let table = Table::new(TEXT);
        assert_eq!(
            table.json(),
            json!([
                { "counter": 1, "kind": "classic", "threshold": 10 },
                { "counter": 12, "kind": "deferred", "more": true },
            ])
        );
        assert_eq!(Table::new("").json(), json!([]));
    }

    #[test]
    fn columns() {
        let mut out = Vec::new();
        assert!(Table::new(TEXT).text(&mut out).is_ok());
        let should = [
            "  counter  kind      threshold\n",
            "        1  classic          10\n",
            "       12  deferred        ...\n",
        ];
        assert_eq!(String::from_utf8_lossy(&out), should.concat());
    }
}
