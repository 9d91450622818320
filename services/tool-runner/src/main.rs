kairo_core::service_main!(ToolRunner, kairo_tool_runner::run);
