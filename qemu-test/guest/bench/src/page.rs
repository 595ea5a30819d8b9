// SPDX-License-Identifier: GPL-2.0

//! One page with all of it, in HTML.

use std::fmt::Write as _;
use std::fs;
use std::iter;
use std::path::Path;

use crate::figure::Results;
use crate::plot::Drawn;
use crate::table::{circumstances, Cell};
use crate::targets::{Target, TARGETS, TCP_TARGETS};
use crate::Error;

/// Its file.
const NAME: &str = "index.html";
const TITLE: &str = "kfabric: benchmarks";
/// The style that makes it readable, also on paper.
const STYLE: &str = "
body { font-family: sans-serif; margin: 2em auto; max-width: 64em; padding: 0 1em; }
table { border-collapse: collapse; }
th, td { border: 1px solid #ccc; padding: 0.2em 0.6em; text-align: right; }
th[scope=row] { font-weight: normal; text-align: left; }
.missed { background: #fdd; font-weight: bold; }
figure { break-inside: avoid; margin: 2em 0; }
svg { height: auto; max-width: 100%; }
";

/// A text in HTML, in quotes as well.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A table of targets.
fn table(title: &str, targets: &[Target], results: &Results, qemu: Option<&Results>) -> String {
    let mut text = format!("<h2>{}</h2>\n<table>\n<thead>\n<tr>", escape(title));
    text += "<th scope=\"col\">what</th>";
    for vehicle in iter::once("").chain(qemu.map(|_| "in QEMU, ")) {
        for column in ["target", "measured", "spread"] {
            let _ = write!(text, "<th scope=\"col\">{vehicle}{column}</th>");
        }
    }
    text += "</tr>\n</thead>\n<tbody>\n";
    for target in targets {
        let _ = write!(text, "<tr><th scope=\"row\">{}</th>", escape(target.what));
        for results in iter::once(results).chain(qemu) {
            let cell = Cell::new(target, results);
            let class = if cell.missed { " class=\"missed\"" } else { "" };
            let _ = write!(
                text,
                "<td>{}</td><td{class}>{}</td><td>{}</td>",
                escape(&cell.bound),
                escape(&cell.measured),
                escape(&cell.spread)
            );
        }
        text += "</tr>\n";
    }
    text + "</tbody>\n</table>\n"
}

/// The whole page.
fn page(results: &Results, qemu: Option<&Results>, plots: &[Drawn]) -> String {
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <title>{TITLE}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{TITLE}</h1>\n"
    );
    for (results, vehicle) in iter::once((results, "")).chain(qemu.map(|qemu| (qemu, "In QEMU: ")))
    {
        let (under, doubt) = circumstances(results);
        if !under.is_empty() {
            let _ = writeln!(
                text,
                "<p>{vehicle}{} {}</p>",
                escape(&under),
                doubt.trim_end()
            );
        }
    }
    text += "<p>The spread is how far the quartiles of the rounds are apart, as a share of the \
             median.</p>\n";
    text += &table("Against other designs", &TARGETS, results, qemu);
    text += &table("Over TCP", &TCP_TARGETS, results, qemu);
    for plot in plots {
        let _ = write!(
            text,
            "<figure>\n<figcaption>{}</figcaption>\n{}\n</figure>\n",
            escape(plot.title),
            plot.svg.trim_end()
        );
    }
    text + "</body>\n</html>\n"
}

/// Writes the page.
pub(crate) fn write(
    results: &Results,
    qemu: Option<&Results>,
    plots: &[Drawn],
    folder: &Path,
) -> Result<(), Error> {
    let path = folder.join(NAME);
    fs::write(&path, page(results, qemu, plots))
        .map_err(|error| Error::File(path.display().to_string(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements that have no end in HTML.
    const EMPTY: [&str; 1] = ["meta"];

    /// Fails unless each element ends in the one in which it has begun, and no text has marks in it.
    fn check(page: &str) {
        let mut rest = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
        let mut open: Vec<&str> = Vec::new();
        while let Some(begin) = rest.find('<') {
            assert!(!rest[..begin].contains('>') || open.last() == Some(&"style"));
            let end = begin + rest[begin..].find('>').unwrap();
            let tag = &rest[begin + 1..end];
            rest = &rest[end + 1..];
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            let name = tag.split([' ', '/']).find(|word| !word.is_empty()).unwrap();
            if tag.starts_with('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !tag.ends_with('/') && !EMPTY.contains(&name) {
                open.push(name);
            }
        }
        assert_eq!(open, [""; 0]);
        assert_eq!(rest, "\n");
    }

    fn results() -> Results {
        let mut results = Results::default();
        for line in [
            r#"{"item":"TCP, round trip","design":"kfi_soft","size":8,"unit":"ns","values":[3.0,3.0]}"#,
            r#"{"item":"TCP, round trip","design":"socket","size":8,"unit":"ns","values":[1.0,1.0]}"#,
            r#"{"vehicle":"uml","processor":"<P> & \"Q\"","processors":2,"load":[1.0,1.5]}"#,
        ] {
            results.add(serde_json::from_str(line).unwrap());
        }
        results
    }

    #[test]
    fn the_page_is_well_formed() {
        let (results, qemu) = (results(), results());
        let svg = "<svg width=\"1\" xmlns=\"http://www.w3.org/2000/svg\">\n<text>\n1\n</text>\n\
                   <line x=\"1\"/>\n</svg>\n";
        let drawn = Drawn {
            title: "One & two",
            svg: svg.to_owned(),
        };
        for qemu in [None, Some(&qemu)] {
            check(&page(&results, qemu, std::slice::from_ref(&drawn)));
        }
        check(&page(&Results::default(), None, &[]));
    }

    #[test]
    fn all_rows_and_plots_are_there() {
        let results = results();
        let drawn = ["One", "Two"].map(|title| Drawn {
            title,
            svg: format!("<svg><title>{title}</title></svg>\n"),
        });
        let text = page(&results, None, &drawn);
        for target in TARGETS.iter().chain(&TCP_TARGETS) {
            assert!(text.contains(&format!("<th scope=\"row\">{}</th>", escape(target.what))));
        }
        assert!(text.contains("<td>≤ 1.40</td><td class=\"missed\">3.00</td><td>0.0 %</td>"));
        assert_eq!(text.matches("<svg>").count(), 2);
        assert!(text.contains("&lt;P&gt; &amp; &quot;Q&quot;"));
    }
}
