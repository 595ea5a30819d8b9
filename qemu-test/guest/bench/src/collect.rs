// SPDX-License-Identifier: GPL-2.0

//! Makes a file of results of what a guest prints.

use std::fs;
use std::io::{self, BufRead};
use std::path::Path;

use crate::figure::{Line, Machine};
use crate::table::{number, spread};
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

/// Reads until the input ends.
pub(crate) fn collect(vehicle: &str, output: &Path) -> Result<(), Error> {
    let failed = |error| Error::File(output.display().to_string(), error);
    let (processor, processors) = processor();
    let mut machine = Machine {
        vehicle: vehicle.to_owned(),
        processor,
        processors,
        load: [load(); 2],
    };
    let (mut lines, mut complete) = (Vec::new(), false);
    for text in io::stdin().lock().lines() {
        let text = text.map_err(|error| Error::File("input".to_owned(), error))?;
        match serde_json::from_str(&text) {
            Ok(Line::Figure(mut figure)) => {
                figure.complete();
                let mut said = match (figure.error, figure.quartiles) {
                    (Some(error), _) => format!("error {error}"),
                    (None, Some(quartiles)) => format!(
                        "{} {} {}",
                        number(figure.median.unwrap_or_default()),
                        figure.unit,
                        spread(quartiles)
                    ),
                    (None, None) => "nothing".to_owned(),
                };
                if let (Some(p50), Some(p99)) = (figure.p50, figure.p99) {
                    said += &format!("  p50 {p50} p99 {p99}");
                }
                println!(
                    "{:26} {:26} {:>8}  {said}",
                    figure.item, figure.design, figure.size
                );
                lines.push(Line::Figure(figure));
            }
            Ok(Line::End { .. }) => complete = true,
            Ok(Line::Machine(_)) => {}
            Err(_) => println!("{text}"),
        }
    }
    machine.load[1] = load();
    lines.insert(0, Line::Machine(machine));
    let mut text = String::new();
    for line in &lines {
        text += &serde_json::to_string(line).map_err(|error| failed(error.into()))?;
        text.push('\n');
    }
    if let Some(folder) = output.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(output, text).map_err(failed)?;
    if complete {
        return Ok(());
    }
    Err(Error::Results("the run did not end".to_owned()))
}
