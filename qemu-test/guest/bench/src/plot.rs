// SPDX-License-Identifier: GPL-2.0

//! Plots, as SVG and as PNG.

use std::fs::{self, File};
use std::io::BufWriter;
use std::iter;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{register_font, FontStyle};

use crate::figure::Results;
use crate::Error;

const SIZE: (u32, u32) = (960, 600);
const FONT: &str = "sans-serif";
/// Nothing pending has a place on a logarithmic axis, too.
const NONE: f64 = 0.5;
/// The part of a plot in which the curves are, about.
const AREA: (f64, f64) = (856.0, 480.0);
/// Points that are less than this apart, in pixels, are one to the eye: lines have two.
const APART: f64 = 3.0;
/// So far apart are labels of the axes, at least.
const LABELS_APART: (f64, f64) = (44.0, 18.0);

/// One line in a plot.
struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
}

/// One plot.
struct Plot {
    name: &'static str,
    title: &'static str,
    x: &'static str,
    y: &'static str,
    /// Where no curve is.
    legend: SeriesLabelPosition,
    curves: Vec<Curve>,
}

/// How one curve lies on another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coincidence {
    /// Nowhere.
    Apart,
    /// From one point to the next, at least once.
    InPart,
    /// From the first point to the last.
    Whole,
}

impl Curve {
    /// Returns how this one lies on another one, on an axis from `low` to `high`.
    fn coincidence(&self, other: &Self, low: f64, high: f64) -> Coincidence {
        let pixels = |of: f64, to: f64| AREA.1 * ((of / to).ln() / (high / low).ln()).abs();
        let same: Vec<_> = self
            .points
            .iter()
            .map(|&(x, y)| {
                other
                    .points
                    .iter()
                    // They are numbers of the same list, or not the same.
                    .any(|&(at, value)| at.to_bits() == x.to_bits() && pixels(y, value) < APART)
            })
            .collect();
        // Points that only meet have no line in common.
        let lines = same.windows(2).filter(|ends| ends[0] && ends[1]).count();
        match lines {
            0 => Coincidence::Apart,
            lines if lines + 1 == self.points.len() => Coincidence::Whole,
            _ => Coincidence::InPart,
        }
    }
}

fn curve(
    results: &Results,
    (item, design): (&str, &str),
    value: impl Fn(f64, f64) -> f64,
) -> Option<Curve> {
    let points: Vec<_> = results
        .each()
        .filter(|figure| figure.item == item && figure.design == design)
        .filter_map(|figure| Some((figure.size as f64, figure.median?)))
        .map(|(size, median)| (size.max(NONE), value(size, median)))
        .collect();
    (points.len() > 1).then(|| Curve {
        name: design.to_owned(),
        points,
    })
}

/// A plot of what some designs cost, against their sizes.
struct Cost {
    name: &'static str,
    title: &'static str,
    x: &'static str,
    /// Where no curve is.
    legend: SeriesLabelPosition,
    item: &'static str,
    designs: &'static [&'static str],
}

const COSTS: [Cost; 6] = [
    Cost {
        name: "add",
        title: "One addition, nothing due",
        x: "operations pending",
        legend: SeriesLabelPosition::UpperLeft,
        item: "add",
        designs: &[
            "kfi_soft",
            "tree irq",
            "sorted",
            "sorted irq",
            "list",
            "list irq",
        ],
    },
    Cost {
        name: "submit",
        title: "One submission, random threshold",
        x: "operations pending",
        legend: SeriesLabelPosition::UpperLeft,
        item: "submit random",
        designs: &["kfi_soft", "tree irq", "tree", "sorted irq", "list irq"],
    },
    Cost {
        name: "endpoints",
        title: "One 8-byte message to any endpoint; one endpoint closed and opened",
        x: "endpoints of the domain",
        legend: SeriesLabelPosition::MiddleLeft,
        item: "scale, endpoints",
        designs: &["message", "close and open"],
    },
    Cost {
        name: "counters",
        title: "One addition to any counter; one counter closed and opened",
        x: "counters of the domain",
        legend: SeriesLabelPosition::MiddleLeft,
        item: "scale, counters",
        designs: &["add", "atomic add", "close and open"],
    },
    Cost {
        name: "regions",
        title: "One 8-byte write to any region; one region closed and registered",
        x: "regions of the domain",
        legend: SeriesLabelPosition::MiddleLeft,
        item: "scale, regions",
        designs: &["write", "close and register"],
    },
    Cost {
        name: "tags",
        title: "One tagged message among many, any of which is meant",
        x: "receives that are posted, or messages that wait for one",
        legend: SeriesLabelPosition::UpperLeft,
        item: "scale, tags",
        designs: &["posted receives", "unexpected messages"],
    },
];

/// Bandwidth in one direction.
const BANDWIDTH: (&str, [&str; 4]) = ("bandwidth", ["memcpy", "write", "send", "tagged"]);

fn plots(results: &Results) -> Vec<Plot> {
    let costs = COSTS.iter().map(|cost| Plot {
        name: cost.name,
        title: cost.title,
        x: cost.x,
        y: "ns",
        legend: cost.legend.clone(),
        curves: cost
            .designs
            .iter()
            .filter_map(|design| curve(results, (cost.item, design), |_, median| median))
            .collect(),
    });
    let (item, designs) = BANDWIDTH;
    let bandwidth = Plot {
        name: "bandwidth",
        title: "Bandwidth of transfers inside the node",
        x: "bytes",
        y: "MB/s",
        legend: SeriesLabelPosition::LowerRight,
        curves: designs
            .iter()
            .filter_map(|design| {
                curve(results, (item, design), |size, median| {
                    size / median * 1000.0
                })
            })
            .collect(),
    };
    costs.chain(iter::once(bandwidth)).collect()
}

/// From the lowest value to the highest; a bit more if these are one.
fn range(values: impl Iterator<Item = f64> + Clone) -> std::ops::Range<f64> {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(0.0, f64::max);
    if low < high {
        low..high
    } else {
        low..low * 2.0
    }
}

/// Where the labels of a logarithmic axis are that is so many pixels long: where it begins, where it
/// ends, and at round numbers that are not too near to these.
fn ticks(range: &std::ops::Range<f64>, length: f64, apart: f64) -> Vec<f64> {
    let place = |value: f64| length * (value / range.start).ln() / (range.end / range.start).ln();
    let decades = range.start.log10().floor() as i32..=range.end.log10().ceil() as i32;
    let mut ticks = vec![range.start, range.end];
    for factor in [1.0, 2.0, 5.0] {
        for decade in decades.clone() {
            let value = factor * 10f64.powi(decade);
            let free = |tick: &f64| (place(*tick) - place(value)).abs() >= apart;
            if range.contains(&value) && ticks.iter().all(free) {
                ticks.push(value);
            }
        }
        // Few are enough.
        if ticks.len() > 4 {
            break;
        }
    }
    ticks.sort_by(f64::total_cmp);
    ticks
}

impl Plot {
    fn values(&self, of: impl Fn(&(f64, f64)) -> f64 + Clone) -> std::ops::Range<f64> {
        range(self.curves.iter().flat_map(|curve| &curve.points).map(of))
    }

    /// The texts beside the lines: their names, and on which of those before them they lie, of which
    /// nothing is to be seen there.
    fn legends(&self) -> Vec<String> {
        let y = self.values(|point| point.1);
        self.curves
            .iter()
            .enumerate()
            .map(|(at, curve)| {
                let on = |how| -> Vec<_> {
                    self.curves[..at]
                        .iter()
                        .filter(|other| curve.coincidence(other, y.start, y.end) == how)
                        .map(|other| other.name.as_str())
                        .collect()
                };
                let (whole, in_part) = (on(Coincidence::Whole), on(Coincidence::InPart));
                let mut notes = Vec::new();
                if !whole.is_empty() {
                    notes.push(format!("on {}", whole.join(" and ")));
                }
                if !in_part.is_empty() {
                    notes.push(format!("in part on {}", in_part.join(" and ")));
                }
                if notes.is_empty() {
                    return curve.name.clone();
                }
                format!("{} ({})", curve.name, notes.join(", "))
            })
            .collect()
    }

    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Result<(), String>
    where
        DB::ErrorType: 'static,
    {
        let draw = || -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
            area.fill(&WHITE)?;
            let (x, y) = (self.values(|point| point.0), self.values(|point| point.1));
            let x_ticks = ticks(&x, AREA.0, LABELS_APART.0);
            let y_ticks = ticks(&y, AREA.1, LABELS_APART.1);
            let mut chart = ChartBuilder::on(area)
                .caption(self.title, (FONT, 24))
                .margin(16)
                .x_label_area_size(48)
                .y_label_area_size(72)
                .build_cartesian_2d(
                    x.log_scale().with_key_points(x_ticks),
                    y.log_scale().with_key_points(y_ticks),
                )?;
            chart
                .configure_mesh()
                .x_desc(self.x)
                .y_desc(self.y)
                .x_label_formatter(&|x| if *x > NONE { label(*x) } else { "0".to_owned() })
                .y_label_formatter(&|y| label(*y))
                .label_style((FONT, 14))
                .axis_desc_style((FONT, 16))
                .light_line_style(WHITE)
                .draw()?;
            for (index, (curve, legend)) in self.curves.iter().zip(self.legends()).enumerate() {
                let color = Palette99::pick(index).to_rgba();
                let style = color.stroke_width(2);
                chart
                    .draw_series(LineSeries::new(curve.points.iter().copied(), style))?
                    .label(legend)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
                chart.draw_series(
                    curve
                        .points
                        .iter()
                        .map(|&point| Circle::new(point, 3, color.filled())),
                )?;
            }
            chart
                .configure_series_labels()
                .position(self.legend.clone())
                .background_style(WHITE.mix(0.8))
                .border_style(BLACK.mix(0.3))
                .label_font((FONT, 14))
                .draw()?;
            area.present()
        };
        draw().map_err(|error| error.to_string())
    }
}

/// A number on an axis, with three digits that matter.
fn label(value: f64) -> String {
    let (value, unit) = match value {
        value if value >= 1e6 => (value / 1e6, "M"),
        value if value >= 1e4 => (value / 1e3, "k"),
        value => (value, ""),
    };
    let digits = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let text = if digits > 0 {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text.as_str()
    };
    format!("{text}{unit}")
}

/// Writes a picture of [`SIZE`] with three bytes a pixel.
fn write_png(path: &Path, pixels: &[u8]) -> Result<(), png::EncodingError> {
    let (width, height) = SIZE;
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(pixels)
}

/// A plot for a page.
pub(crate) struct Drawn {
    /// In words.
    pub(crate) title: &'static str,
    /// The picture.
    pub(crate) svg: String,
}

/// Writes the plots of all that was measured, and returns them.
pub(crate) fn write(results: &Results, folder: &Path) -> Result<Vec<Drawn>, Error> {
    // The host need not have fonts.
    register_font(FONT, FontStyle::Normal, dejavu::sans::regular())
        .map_err(|_| Error::Plot(FONT.to_owned(), "not a font".to_owned()))?;
    let mut drawn = Vec::new();
    for plot in plots(results) {
        if plot.curves.is_empty() {
            continue;
        }
        let path = |suffix| folder.join(format!("{}.{suffix}", plot.name));
        let failed = |path: &Path, error| Error::Plot(path.display().to_string(), error);
        let (svg, png) = (path("svg"), path("png"));
        let mut picture = String::new();
        plot.draw(&SVGBackend::with_string(&mut picture, SIZE).into_drawing_area())
            .map_err(|error| failed(&svg, error))?;
        fs::write(&svg, &picture).map_err(|error| failed(&svg, error.to_string()))?;
        let (width, height) = SIZE;
        let mut pixels = vec![0; 3 * width as usize * height as usize];
        plot.draw(&BitMapBackend::with_buffer(&mut pixels, SIZE).into_drawing_area())
            .map_err(|error| failed(&png, error))?;
        write_png(&png, &pixels).map_err(|error| failed(&png, error.to_string()))?;
        drawn.push(Drawn {
            title: plot.title,
            svg: picture,
        });
    }
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::sources;

    fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
        Curve {
            name: name.to_owned(),
            points: points.to_vec(),
        }
    }

    fn plot(curves: Vec<Curve>) -> Plot {
        Plot {
            name: "test",
            title: "A test",
            x: "operations pending",
            y: "ns",
            legend: SeriesLabelPosition::UpperLeft,
            curves,
        }
    }

    #[test]
    fn lines_on_each_other_say_so() {
        let plot = plot(vec![
            curve("one", &[(0.5, 10.0), (1.0, 10.0), (10.0, 10.0)]),
            curve("same", &[(0.5, 10.05), (1.0, 9.95), (10.0, 10.0)]),
            curve("partly", &[(0.5, 10.0), (1.0, 10.0), (10.0, 1000.0)]),
            curve("crossing", &[(0.5, 20.0), (1.0, 10.0), (10.0, 20.0)]),
            curve("elsewhere", &[(2.0, 10.0), (20.0, 10.0)]),
        ]);
        assert_eq!(
            plot.legends(),
            [
                "one",
                "same (on one)",
                "partly (in part on one and same)",
                "crossing",
                "elsewhere"
            ]
        );
    }

    #[test]
    fn axes_begin_where_the_data_do() {
        let plot = plot(vec![
            curve("one", &[(0.5, 30.0), (100.0, 40.0)]),
            curve("two", &[(1.0, 25.0), (1000.0, 70_000.0)]),
        ]);
        assert_eq!(plot.values(|point| point.0), 0.5..1000.0);
        assert_eq!(plot.values(|point| point.1), 25.0..70_000.0);
        // One value makes an axis, too.
        let flat = range([5.0, 5.0].into_iter());
        assert_eq!(flat, 5.0..10.0);
    }

    #[test]
    fn axes_say_where_they_begin_and_end() {
        let all = ticks(&(0.5..100_000.0), AREA.0, LABELS_APART.0);
        let wanted = [0.5, 1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0];
        assert_eq!(all.len(), wanted.len());
        for (tick, wanted) in all.iter().zip(wanted) {
            assert!((tick - wanted).abs() < 1e-6 * wanted);
        }
        // There need not be a power of ten.
        let few = ticks(&(21.0..63.0), AREA.1, LABELS_APART.1);
        assert_eq!(few, [21.0, 50.0, 63.0]);
        // None is too near to another one.
        let near = ticks(&(99.0..1010.0), AREA.1, LABELS_APART.1);
        assert!(near.len() >= 3 && !near.contains(&100.0) && !near.contains(&1000.0));
    }

    /// A curve of what nobody measures would only be missing.
    #[test]
    fn curves_are_those_of_the_module() {
        let module = sources();
        let (item, designs) = BANDWIDTH;
        let costs = COSTS.iter().map(|cost| (cost.item, cost.designs));
        for (item, designs) in costs.chain(iter::once((item, &designs[..]))) {
            for name in iter::once(&item).chain(designs) {
                assert!(module.contains(&format!("\"{name}\"")), "{name}");
            }
        }
    }

    #[test]
    fn what_was_measured_is_plotted() {
        let mut results = Results::default();
        for (design, size, value) in [
            ("message", 1, 900),
            ("message", 4096, 1200),
            ("close and open", 1, 90_000),
            // One point is no line.
        ] {
            let text = format!(
                r#"{{"item":"scale, endpoints","design":"{design}","size":{size},"unit":"ns","values":[{value}.0],"median":{value}.0}}"#
            );
            results.add(serde_json::from_str(&text).unwrap());
        }
        let plots = plots(&results);
        let drawn: Vec<_> = plots
            .iter()
            .filter(|plot| !plot.curves.is_empty())
            .collect();
        assert_eq!(drawn.len(), 1);
        assert_eq!(drawn[0].name, "endpoints");
        assert_eq!(drawn[0].legends(), ["message"]);
        assert_eq!(drawn[0].curves[0].points, [(1.0, 900.0), (4096.0, 1200.0)]);
    }

    #[test]
    fn labels() {
        for (value, text) in [
            (0.7, "0.7"),
            (1.0, "1"),
            (2.345, "2.35"),
            (37.43, "37.4"),
            (100.0, "100"),
            (4096.0, "4096"),
            (65_536.0, "65.5k"),
            (100_000.0, "100k"),
            (1_048_576.0, "1.05M"),
        ] {
            assert_eq!(label(value), text);
        }
    }

    #[test]
    fn plots_are_drawn() {
        register_font(FONT, FontStyle::Normal, dejavu::sans::regular())
            .map_err(|_| "not a font")
            .unwrap();
        let plot = plot(vec![
            curve("one", &[(0.5, 30.0), (100.0, 40.0)]),
            curve("two", &[(0.5, 30.0), (100.0, 40.0)]),
        ]);
        let mut picture = String::new();
        plot.draw(&SVGBackend::with_string(&mut picture, SIZE).into_drawing_area())
            .unwrap();
        for text in [
            "two (on one)",
            "operations pending",
            "\n0\n",
            "\n30\n",
            "\n100\n",
        ] {
            assert!(picture.contains(text), "{text}");
        }
    }
}
