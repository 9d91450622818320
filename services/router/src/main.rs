kairo_core::service_main!(Router, kairo_router::run);
