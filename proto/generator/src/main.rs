//! Writes the files generated from the protos to the repository: `cargo run -p kairo-generator`.

use anyhow::Context;

fn main() -> anyhow::Result<()> {
    for (path, text) in kairo_generator::generate()? {
        let whole = kairo_generator::root().join(&path);
        if std::fs::read(&whole).ok().as_deref() == Some(&text) {
            continue;
        }
        std::fs::write(&whole, text).with_context(|| format!("cannot write {path}"))?;
        println!("{path}");
    }
    Ok(())
}
