fn main() {
    for c in gitspoke::api::crds::all() {
        println!("---\n{}", serde_saphyr::to_string(&c).unwrap());
    }
}
