//! Rows in columns, for people.

use console::{Alignment, measure_text_width, pad_str};

/// The rows under their heads, each column as wide as it needs to be.
pub fn table<const N: usize>(heads: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> Vec<String> {
    let rows: Vec<[String; N]> = [heads.map(str::to_uppercase)].into_iter().chain(rows).collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = measure_text_width(cell).max(*width);
        }
    }
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| pad_str(cell, width, Alignment::Left, None));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_their_widest_cell() {
        let rows = [["größe".to_owned(), "1".to_owned()], ["a".to_owned(), String::new()]];
        assert_eq!(table(["name", "n"], rows), ["NAME   N", "größe  1", "a"]);
    }
}
