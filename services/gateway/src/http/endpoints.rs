//! The endpoints that rpcs declare: their paths, who may use them, and what answers at each.

use axum::{Router, routing::MethodRouter};

use super::{
    Gateway,
    access::{ADMIN, Access, Asked, Closed, Free, KEY, Named, READ, WRITE, row},
};

include!("generated/endpoints.rs");
