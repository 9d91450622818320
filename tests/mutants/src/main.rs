use std::path::Path;
fn main() {
    let root = Path::new(".");
    let sources = kairo_mutants::source::all(root).unwrap();
    let c = kairo_mutants::candidates::all(&sources).unwrap();
    let mut k = std::collections::BTreeMap::new();
    for c in &c {
        *k.entry(c.kind).or_insert(0) += 1;
    }
    println!("{} {k:?}", c.len());
    println!("{:?}", kairo_mutants::schemata::build(root, Path::new("target/mutants/schemata"), &sources, &c));
}
