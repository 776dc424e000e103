pub mod api;
pub mod yaml;
