// SPDX-License-Identifier: GPL-2.0

//! Plots, as SVG and as PNG.

use std::fs::File;
use std::io::BufWriter;
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

fn plots(results: &Results) -> Vec<Plot> {
    let cost = |item: &'static str, designs: &[&str]| {
        designs
            .iter()
            .filter_map(|design| curve(results, (item, design), |_, median| median))
            .collect()
    };
    vec![
        Plot {
            name: "add",
            title: "One addition, nothing due",
            x: "operations pending",
            y: "ns",
            legend: SeriesLabelPosition::UpperLeft,
            curves: cost(
                "add",
                &[
                    "kfi_soft",
                    "tree irq",
                    "sorted",
                    "sorted irq",
                    "list",
                    "list irq",
                ],
            ),
        },
        Plot {
            name: "submit",
            title: "One submission, random threshold",
            x: "operations pending",
            y: "ns",
            legend: SeriesLabelPosition::UpperLeft,
            curves: cost(
                "submit random",
                &["kfi_soft", "tree irq", "tree", "sorted irq", "list irq"],
            ),
        },
        Plot {
            name: "bandwidth",
            title: "Bandwidth of transfers inside the node",
            x: "bytes",
            y: "MB/s",
            legend: SeriesLabelPosition::LowerRight,
            curves: ["memcpy", "write", "send", "tagged"]
                .iter()
                .filter_map(|design| {
                    curve(results, ("bandwidth", design), |size, median| {
                        size / median * 1000.0
                    })
                })
                .collect(),
        },
    ]
}

impl Plot {
    fn range(&self, of: impl Fn(&(f64, f64)) -> f64) -> std::ops::Range<f64> {
        let values = || self.curves.iter().flat_map(|curve| &curve.points).map(&of);
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(0.0, f64::max);
        low / 1.5..high * 1.5
    }

    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>) -> Result<(), String>
    where
        DB::ErrorType: 'static,
    {
        let draw = || -> Result<(), DrawingAreaErrorKind<DB::ErrorType>> {
            area.fill(&WHITE)?;
            let mut chart = ChartBuilder::on(area)
                .caption(self.title, (FONT, 24))
                .margin(16)
                .x_label_area_size(48)
                .y_label_area_size(72)
                .build_cartesian_2d(
                    self.range(|point| point.0).log_scale(),
                    self.range(|point| point.1).log_scale(),
                )?;
            chart
                .configure_mesh()
                .x_desc(self.x)
                .y_desc(self.y)
                .x_label_formatter(&|x| label(*x))
                .y_label_formatter(&|y| label(*y))
                .label_style((FONT, 14))
                .axis_desc_style((FONT, 16))
                .light_line_style(WHITE)
                .draw()?;
            for (index, curve) in self.curves.iter().enumerate() {
                let color = Palette99::pick(index).to_rgba();
                let style = color.stroke_width(2);
                chart
                    .draw_series(LineSeries::new(curve.points.iter().copied(), style))?
                    .label(&curve.name)
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

/// A number on a logarithmic axis.
fn label(value: f64) -> String {
    match value {
        value if value < 0.9 => String::new(),
        value if value >= 1e6 => format!("{}M", (value / 1e6).round()),
        value if value >= 1e3 => format!("{}k", (value / 1e3).round()),
        value => format!("{}", value.round()),
    }
}

/// Writes a picture of [`SIZE`] with three bytes a pixel.
fn write_png(path: &Path, pixels: &[u8]) -> Result<(), png::EncodingError> {
    let (width, height) = SIZE;
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header()?.write_image_data(pixels)
}

/// Writes the plots of all that was measured.
pub(crate) fn write(results: &Results, folder: &Path) -> Result<(), Error> {
    // The host need not have fonts.
    register_font(FONT, FontStyle::Normal, dejavu::sans::regular())
        .map_err(|_| Error::Plot(FONT.to_owned(), "not a font".to_owned()))?;
    for plot in plots(results) {
        if plot.curves.is_empty() {
            continue;
        }
        let path = |suffix| folder.join(format!("{}.{suffix}", plot.name));
        let failed = |path: &Path, error| Error::Plot(path.display().to_string(), error);
        let (svg, png) = (path("svg"), path("png"));
        plot.draw(&SVGBackend::new(&svg, SIZE).into_drawing_area())
            .map_err(|error| failed(&svg, error))?;
        let (width, height) = SIZE;
        let mut pixels = vec![0; 3 * width as usize * height as usize];
        plot.draw(&BitMapBackend::with_buffer(&mut pixels, SIZE).into_drawing_area())
            .map_err(|error| failed(&png, error))?;
        write_png(&png, &pixels).map_err(|error| failed(&png, error.to_string()))?;
    }
    Ok(())
}
