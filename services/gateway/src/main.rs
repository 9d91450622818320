kairo_core::service_main!(Gateway, kairo_gateway::run);
