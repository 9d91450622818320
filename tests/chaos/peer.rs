//! `kairo-chaos-peer`: the MCP server over stdio that a chaos run has tool-runners start. See [`kairo_tests::chaos::peers`].

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    kairo_tests::chaos::peers::mcp_stdio::serve(&arguments);
}
