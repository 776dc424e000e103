//! The rows, with what was promised.

/// Every row measured so far.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

struct Row {
    what: String,
    measured: String,
    budget: String,
    /// Measured against budget: 1 and more keeps the promise.
    ratio: f64,
    reference: &'static str,
}

impl Table {
    /// A phase against the raw ceiling of the same run, in seconds.
    pub(crate) fn phase(&mut self, what: String, took: f64, ceiling: f64, reference: &'static str) {
        let share = ceiling / took;
        self.rows.push(Row {
            what,
            measured: format!("{took:.2} s, {:.0} % of the ceiling", share * 100.0),
            budget: format!("80 % of the ceiling, {ceiling:.2} s"),
            ratio: share / 0.8,
            reference,
        });
    }

    /// A number that must not exceed its budget.
    pub(crate) fn at_most(
        &mut self,
        what: String,
        measured: f64,
        unit: &str,
        budget: f64,
        reference: &'static str,
    ) {
        // Nothing promised and nothing measured is a promise kept.
        let ratio = if measured <= 0.0 {
            f64::INFINITY
        } else {
            budget / measured
        };
        self.rows.push(Row {
            what,
            measured: format!("{}{unit}", short(measured)),
            budget: format!("{}{unit}", short(budget)),
            ratio,
            reference,
        });
    }

    pub(crate) fn keeps_promises(&self) -> bool {
        self.rows.iter().all(Row::keeps)
    }

    pub(crate) fn print(&self) {
        println!("\n| row | measured | budget | ratio | meets | OCM, another run and machine |");
        println!("|---|---|---|---|---|---|");
        for row in &self.rows {
            let meets = if row.keeps() { "yes" } else { "NO" };
            let ratio = if row.ratio.is_finite() {
                format!("{:.2}", row.ratio)
            } else {
                "-".to_owned()
            };
            println!(
                "| {} | {} | {} | {ratio} | {meets} | {} |",
                row.what, row.measured, row.budget, row.reference
            );
        }
    }
}

impl Row {
    fn keeps(&self) -> bool {
        self.ratio >= 1.0
    }
}

fn short(number: f64) -> String {
    if number.fract() == 0.0 {
        // Sums of nothing are a negative zero.
        format!("{:.0}", number.abs())
    } else {
        format!("{number:.2}")
    }
}
