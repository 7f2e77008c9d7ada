use super::*;

fn found(name: &str, start: u64) -> ListedSnapshot {
    let info = Info {
        snapshot: name.to_owned(),
        uuid: String::new(),
        server: String::new(),
        include_global_state: false,
        has_keys: false,
        metadata: None,
        start,
        end: start,
        indices: Default::default(),
        failures: Default::default(),
    };
    ListedSnapshot::made("backups", info)
}

fn page(query: &[(&str, &str)]) -> (Vec<String>, Option<String>, usize, usize) {
    let query = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let page = Page::parse(&Params::new(&query)).unwrap();
    let (found, next, total, remaining) = page.cut(vec![found("b", 1), found("a", 3), found("c", 2)]);
    (found.into_iter().map(|it| it.info.snapshot).collect(), next, total, remaining)
}

#[test]
fn pages_follow_each_other() {
    let (names, next, total, remaining) = page(&[("sort", "name"), ("order", "desc"), ("size", "1")]);
    assert_eq!((names, total, remaining), (vec!["c".to_owned()], 3, 2));
    let next = next.unwrap();
    assert_eq!(STANDARD.decode(&next).unwrap(), b"c,backups,c");
    let (names, next, _, remaining) =
        page(&[("sort", "name"), ("order", "desc"), ("size", "5"), ("after", &next)]);
    assert_eq!((names, next, remaining), (vec!["b".to_owned(), "a".to_owned()], None, 0));
    assert_eq!(page(&[]).0, ["b", "c", "a"]);
    assert_eq!(page(&[("offset", "1"), ("size", "1")]).0, ["c"]);
    assert_eq!(page(&[("sort", "name"), ("from_sort_value", "b")]).0, ["b", "c"]);
}

#[test]
fn moments_are_written_with_milliseconds() {
    assert_eq!(date(1_795_380_990_531), "2026-11-22T20:56:30.531Z");
    assert_eq!(date(0), "1970-01-01T00:00:00.000Z");
}
