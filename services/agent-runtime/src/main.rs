kairo_core::service_main!(AgentRuntime, kairo_agent_runtime::run);
