//! Checks that the committed files match the protos.

#[test]
fn generated_code_is_what_the_protos_say() {
    for (path, text) in kairo_generator::generate().unwrap() {
        let committed = std::fs::read(kairo_generator::root().join(&path)).unwrap_or_default();
        assert!(committed == text, "{path} is out of date: run cargo run -p kairo-generator");
    }
}
