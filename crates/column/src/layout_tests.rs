use super::*;
use proptest::prelude::*;

fn ty(kind: Kind, size: u32, nullable: bool) -> ColumnType {
    ColumnType { kind, size, nullable, binary: false }
}

fn new(name: &str, ty: ColumnType, source: Source) -> NewColumn {
    NewColumn { name: name.into(), ty, source }
}

fn added(bytes: &[u8]) -> Source {
    Source::Added(Value::Bytes(bytes.to_vec()))
}

/// a INT, b VARCHAR(20) NULL.
fn two_columns() -> Layouts {
    let null = Source::Added(Value::Null);
    Layouts::new(vec![
        new("a", ty(Kind::Signed, 4, false), null.clone()),
        new("b", ty(Kind::Varchar, 20, true), null),
    ])
}

fn forms(layout: &Layout) -> Vec<(u32, String)> {
    layout.columns.iter().map(|c| (c.id, c.ty.to_string())).collect()
}

#[test]
fn columns_keep_their_ids_through_any_change_and_no_id_is_used_twice() {
    let one = two_columns();
    assert_eq!(forms(one.current()), [(1, "Signed(4)".into()), (2, "Varchar(20) null".into())]);
    // b dropped, c first, a wider.
    let two = one
        .changed(vec![
            new("c", ty(Kind::Unsigned, 1, false), added(&[7])),
            new("a", ty(Kind::Signed, 8, true), Source::Column(0)),
        ])
        .unwrap();
    assert_eq!(forms(two.current()), [(3, "Unsigned(1)".into()), (1, "Signed(8) null".into())]);
    // b again is another column.
    let three = two
        .changed(vec![
            new("a", ty(Kind::Signed, 8, true), Source::Column(1)),
            new("b", ty(Kind::Varchar, 20, true), Source::Added(Value::Null)),
        ])
        .unwrap();
    assert_eq!(forms(three.current()), [(1, "Signed(8) null".into()), (4, "Varchar(20) null".into())]);
    assert_eq!(three.versions().len(), 3);
    assert_eq!(three.get(1).map(forms), Some(forms(one.current())), "old layouts stay");
    assert_eq!(three.get(0), None);
    assert_eq!(three.get(4), None);
    assert_eq!(three.current().null_bytes(), 1);
}

#[test]
fn other_names_are_not_another_layout() {
    let one = two_columns();
    let columns = vec![
        new("x", ty(Kind::Signed, 4, false), Source::Column(0)),
        new("b", ty(Kind::Varchar, 20, true), Source::Column(1)),
    ];
    let renamed = one.changed(columns).unwrap();
    assert_eq!(renamed.versions().len(), 1);
    assert_eq!(renamed.current().columns[0].name, "x");
}

#[test]
fn what_a_column_was_added_with_grows_with_it() {
    let wide = |size, source| {
        vec![
            new("a", ty(Kind::Signed, 4, false), Source::Column(0)),
            new("b", ty(Kind::Varchar, 20, true), Source::Column(1)),
            new("c", ty(Kind::Signed, size, false), source),
        ]
    };
    let layouts = two_columns().changed(wide(2, added(&[0xfe, 0xff]))).unwrap();
    let layouts = layouts.changed(wide(8, Source::Column(2))).unwrap();
    let value = layouts.current().columns[2].added_with.clone();
    assert_eq!(value, Some(Value::Bytes((-2i64).to_le_bytes().to_vec())));
    assert_eq!(layouts.versions()[1].columns[2].added_with, None, "only the current layout says it");
}

#[test]
fn types_only_grow() {
    use Kind::*;
    let grows =
        |from: (Kind, u32), to: (Kind, u32)| ty(from.0, from.1, false).can_become(&ty(to.0, to.1, false));
    for (from, to) in [
        ((Signed, 1), (Signed, 8)),
        ((Unsigned, 4), (Unsigned, 8)),
        ((Unsigned, 4), (Signed, 8)),
        ((Enum, 1), (Enum, 2)),
        ((Set, 1), (Set, 8)),
        ((Char, 10), (Char, 11)),
        ((Char, 10), (Varchar, 10)),
        ((Varchar, 255), (Varchar, 256)),
        ((Varchar, 255), (Blob, 1)),
        ((Blob, 2), (Blob, 4)),
        ((Large, 2), (Large, 4)),
    ] {
        assert!(grows(from, to), "{from:?} to {to:?}");
        assert_eq!(grows(to, from), from == to, "{to:?} to {from:?}");
    }
    for (from, to) in [
        ((Signed, 4), (Unsigned, 8)),
        ((Unsigned, 4), (Signed, 4)),
        ((Varchar, 256), (Blob, 1)),
        ((Large, 2), (Blob, 4)),
        ((Blob, 2), (Large, 2)),
        ((Varchar, 255), (Large, 2)),
        ((Float, 4), (Float, 8)),
        ((Bytes, 4), (Bytes, 5)),
        ((Bit, 1), (Bit, 2)),
        ((Enum, 1), (Set, 8)),
        ((Varchar, 10), (Char, 10)),
    ] {
        assert!(!grows(from, to), "{from:?} to {to:?}");
    }
    assert!(ty(Signed, 4, false).can_become(&ty(Signed, 4, true)));
    assert!(!ty(Signed, 4, true).can_become(&ty(Signed, 4, false)));
    let binary = ColumnType { binary: true, ..ty(Char, 4, false) };
    assert!(!binary.can_become(&ty(Varchar, 4, false)), "the zeros that fill it are not in the row");
}

#[test]
fn what_cannot_follow_is_refused_and_says_why() {
    let one = two_columns();
    let narrow = one.changed(vec![new("a", ty(Kind::Signed, 2, false), Source::Column(0))]);
    let text = narrow.unwrap_err().to_string();
    assert_eq!(text, "column a cannot change from Signed(4) to Signed(2) without its rows being rewritten");
    let a = |source| new("a", ty(Kind::Signed, 4, false), source);
    for columns in [
        vec![a(Source::Column(2))],
        vec![a(Source::Column(0)), a(Source::Column(0))],
        vec![a(Source::Added(Value::Null))],
        vec![a(added(&[1, 2, 3]))],
    ] {
        assert_eq!(one.changed(columns), Err(LayoutError::Source { name: "a".into() }));
    }
}

#[test]
fn a_table_does_not_keep_layouts_for_ever() {
    let turned = |layouts: &Layouts| {
        let columns = &layouts.current().columns;
        (0..columns.len())
            .map(|at| new("x", columns[columns.len() - 1 - at].ty, Source::Column(columns.len() - 1 - at)))
            .collect()
    };
    let many = |count: usize| Layouts::new(vec![new("a", ty(Kind::Signed, 4, false), added(&[0; 4])); count]);
    for (columns, most) in [(2, LAYOUTS_MAX), (100, LAYOUT_COLUMNS_MAX / 100), (1000, LAYOUTS_MIN)] {
        let mut layouts = many(columns);
        // Each step copies all layouts: those between need not be made one by one.
        while layouts.versions().len() < most - 1 {
            let mut next = layouts.current().clone();
            next.version += 1;
            next.columns.reverse();
            layouts.versions.push(next);
        }
        assert!(layouts.has_room());
        let layouts = layouts.changed(turned(&layouts)).unwrap();
        assert_eq!(layouts.current().version as usize, most);
        assert!(!layouts.has_room());
        assert_eq!(layouts.changed(turned(&layouts)), Err(LayoutError::TooMany(most)));
    }
}

#[test]
fn thousands_of_changes_of_one_column_are_stored_in_little_and_read_back() {
    let mut layouts = Layouts::new(vec![new("a", ty(Kind::Varchar, 20, true), added(b"")); 24]);
    for round in 0..400usize {
        let kept = |at: usize| new("a", layouts.current().columns[at].ty, Source::Column(at));
        let count = layouts.current().columns.len();
        let mut columns: Vec<NewColumn> =
            (0..count).filter(|at| round % 3 != 1 || *at != round % count).map(kept).collect();
        match round % 3 {
            0 => columns.insert(round % count, new("b", ty(Kind::Signed, 4, false), added(&[1, 2, 3, 4]))),
            2 => columns.swap(round % count, (round * 7 + 1) % count),
            _ => {}
        }
        layouts = layouts.changed(columns).unwrap();
    }
    let text = serde_json::to_string(&layouts).unwrap();
    assert_eq!(serde_json::from_str::<Layouts>(&text).unwrap(), layouts);
    assert!(text.len() < 400 * 600, "{} bytes", text.len());
}

#[test]
fn changes_that_do_not_fit_what_was_before_are_refused() {
    let text = |head: usize, tail: usize| {
        let column = r#"{"id":1,"kind":"Signed","size":4}"#;
        format!(
            r#"{{"versions":[{{"version":1,"columns":[{column}]}},{{"version":2,"changed":{{"head":{head},"columns":[],"tail":{tail}}}}},{{"version":3,"columns":[{column}]}}],"next_column_id":2}}"#
        )
    };
    assert!(serde_json::from_str::<Layouts>(&text(1, 0)).is_ok());
    assert!(serde_json::from_str::<Layouts>(&text(0, 1)).is_ok());
    for (head, tail) in [(1, 1), (2, 0), (0, 2), (usize::MAX, 0), (0, usize::MAX)] {
        let error = serde_json::from_str::<Layouts>(&text(head, tail)).unwrap_err();
        assert!(error.to_string().contains("not layouts of a table"), "{error}");
    }
}

#[test]
fn the_format_in_descriptors() {
    let layouts = two_columns()
        .changed(vec![
            new("a", ty(Kind::Signed, 8, false), Source::Column(0)),
            new("c", ColumnType { binary: true, ..ty(Kind::Varchar, 3, true) }, added(b"\x00z")),
            new("d", ty(Kind::Blob, 2, true), Source::Added(Value::Null)),
        ])
        .unwrap();
    let text = serde_json::to_string(&layouts).unwrap();
    let golden = concat!(
        r#"{"versions":[{"version":1,"columns":[{"id":1,"kind":"Signed","size":4},"#,
        r#"{"id":2,"kind":"Varchar","size":20,"nullable":true}]},"#,
        r#"{"version":2,"columns":[{"id":1,"name":"a","kind":"Signed","size":8},"#,
        r#"{"id":3,"name":"c","kind":"Varchar","size":3,"nullable":true,"binary":true,"#,
        r#""added_with":{"Bytes":"007a"}},"#,
        r#"{"id":4,"name":"d","kind":"Blob","size":2,"nullable":true,"added_with":"Null"}]}],"#,
        r#""next_column_id":5}"#
    );
    assert_eq!(text, golden);
    assert_eq!(serde_json::from_str::<Layouts>(&text).unwrap(), layouts);
}

#[test]
fn layouts_that_cannot_be_are_not_believed() {
    let good = serde_json::to_string(&two_columns()).unwrap();
    for (part, instead) in [
        (r#""version":1"#, r#""version":2"#),
        (r#""id":2"#, r#""id":1"#),
        (r#""next_column_id":3"#, r#""next_column_id":2"#),
        (r#""kind":"Signed""#, r#""kind":"Complex""#),
        (r#""size":4"#, r#""size":-4"#),
    ] {
        assert!(good.contains(part), "{good}");
        assert!(serde_json::from_str::<Layouts>(&good.replace(part, instead)).is_err(), "{instead}");
    }
    assert!(serde_json::from_str::<Layouts>(r#"{"versions":[],"next_column_id":1}"#).is_err());
    let layouts = two_columns();
    let a = new("a", ty(Kind::Signed, 8, false), Source::Column(0));
    let c = new("c", ty(Kind::Unsigned, 1, false), added(&[1]));
    let text = serde_json::to_string(&layouts.changed(vec![a, c]).unwrap()).unwrap();
    for (part, instead) in [
        (r#","added_with":{"Bytes":"01"}"#, ""),
        (r#"{"Bytes":"01"}"#, r#"{"Bytes":"0102"}"#),
        (r#"{"Bytes":"01"}"#, r#"{"Bytes":"0g"}"#),
        (r#"{"Bytes":"01"}"#, r#""Null""#),
        (r#""kind":"Signed","size":8"#, r#""kind":"Signed","size":2"#),
    ] {
        assert!(text.contains(part), "{text}");
        assert!(serde_json::from_str::<Layouts>(&text.replace(part, instead)).is_err(), "{instead}");
    }
}

fn any_kind() -> impl Strategy<Value = Kind> {
    use Kind::*;
    prop_oneof![
        Just(Signed),
        Just(Unsigned),
        Just(Float),
        Just(Bytes),
        Just(Bit),
        Just(Enum),
        Just(Set),
        Just(Char),
        Just(Varchar),
        Just(Blob),
        Just(Large)
    ]
}

fn any_type() -> impl Strategy<Value = ColumnType> {
    (any_kind(), prop_oneof![Just(1u32), Just(2), Just(3), Just(4), Just(8)], any::<bool>())
        .prop_map(|(kind, size, nullable)| ty(kind, size, nullable))
}

/// The number that bytes are, as a column of this type shows it.
fn number(ty: &ColumnType, bytes: &[u8]) -> i128 {
    let mut all =
        [if ty.kind == Kind::Signed && bytes.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 }; 16];
    all[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(all)
}

proptest! {
    #[test]
    fn a_value_is_the_same_after_growing_at_once_or_step_by_step(
        types in prop::collection::vec(any_type(), 1..5),
        bytes in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let first = types[0];
        let value: Vec<u8> = match first.kind.is_counted() {
            true => bytes.iter().copied().take(first.size as usize).collect(),
            false => bytes.iter().copied().chain(std::iter::repeat(0x80)).take(first.size as usize).collect(),
        };
        prop_assert!(first.is_valid(&value));
        let (mut ty, mut grown) = (first, value.clone());
        for next in &types[1..] {
            if ty.can_become(next) {
                grown = ty.convert(&grown, next);
                ty = *next;
                prop_assert!(ty.is_valid(&grown), "{first} to {ty}: {grown:?}");
            }
        }
        prop_assert!(first.can_become(&ty), "growing twice is growing once");
        prop_assert_eq!(&first.convert(&value, &ty), &grown);
        if !first.kind.is_counted() {
            prop_assert_eq!(number(&first, &value), number(&ty, &grown));
        }
    }

    #[test]
    fn descriptors_of_any_text_give_layouts_that_hold_or_an_error(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let a = new("a", ty(Kind::Signed, 8, true), Source::Column(0));
        let c = new("c", ty(Kind::Varchar, 9, false), added(b"some"));
        let mut text = serde_json::to_vec(&two_columns().changed(vec![c, a]).unwrap()).unwrap();
        let at = at.index(text.len());
        if cut { text.truncate(at) } else { text[at] = byte }
        if let Ok(layouts) = serde_json::from_slice::<Layouts>(&text) {
            prop_assert_eq!(layouts.fault(), None);
        }
    }
}

#[test]
fn references_are_only_for_columns_that_had_them_from_the_beginning() {
    let column = |kind, source| NewColumn { source, ..new("c", ty(kind, 2, true), Source::Column(0)) };
    let first = Layouts::new(vec![
        column(Kind::Large, Source::Added(Value::Null)),
        column(Kind::Blob, Source::Added(Value::Null)),
        column(Kind::Varchar, Source::Added(Value::Null)),
    ]);
    let kind_of = |new: NewColumn| new.without_new_references(first.current()).ty.kind;
    assert_eq!(kind_of(column(Kind::Large, Source::Column(0))), Kind::Large);
    assert_eq!(kind_of(column(Kind::Large, Source::Column(1))), Kind::Blob);
    assert_eq!(kind_of(column(Kind::Large, Source::Column(2))), Kind::Blob);
    assert_eq!(kind_of(column(Kind::Large, Source::Added(Value::Null))), Kind::Large);
    assert_eq!(kind_of(column(Kind::Varchar, Source::Column(2))), Kind::Varchar);
}
