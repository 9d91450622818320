kairo_core::service_main!(Projector, kairo_projector::run);
