//! Scripts that read the fields of documents, and call functions of their host.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use sparrow_scripts::{Context, Fault, Field, Function, Host, Machine, Script, Value};

const SCORE: Context = Context {
    name: "score",
    variables: &["doc", "_score"],
    functions: &[
        Function { name: "saturation", arguments: &[2] },
        Function { name: "dotProduct", arguments: &[2] },
        Function { name: "emit", arguments: &[1, 2] },
    ],
};

/// A document, with what it was asked.
#[derive(Default)]
struct Document {
    fields: BTreeMap<&'static str, Vec<Value>>,
    emitted: Vec<f64>,
    asked: Vec<Option<usize>>,
}

impl Host for Document {
    fn has_field(&mut self, field: &Field) -> Result<bool, Fault> {
        Ok(self.fields.contains_key(&*field.name))
    }

    fn count(&mut self, field: &Field) -> Result<usize, Fault> {
        self.asked.push(field.place);
        Ok(self.fields[&*field.name].len())
    }

    fn value(&mut self, field: &Field, at: usize) -> Result<Value, Fault> {
        Ok(self.fields[&*field.name][at].clone())
    }

    fn method(&mut self, field: &Field, name: &str, arguments: &[Value]) -> Result<Option<Value>, Fault> {
        Ok(match (&*field.name, name, arguments) {
            ("place", "arcDistance", [lat, lon]) => {
                Some(Value::Double(lat.as_f64().unwrap() + lon.as_f64().unwrap()))
            }
            ("place", "lat", []) => Some(Value::Double(48.5)),
            _ => None,
        })
    }

    fn call(&mut self, function: usize, arguments: &[Value]) -> Result<Value, Fault> {
        let number = |at: usize| arguments[at].as_f64().ok_or_else(|| Fault::illegal("no number"));
        match function {
            0 => Ok(Value::Double(number(0)? / (number(0)? + number(1)?))),
            1 => {
                let vector = arguments[0].elements().ok_or_else(|| Fault::illegal("no vector"))?;
                Ok(Value::Double(vector.iter().filter_map(Value::as_f64).sum()))
            }
            _ => {
                self.emitted.push(number(0)?);
                Ok(Value::Null)
            }
        }
    }
}

fn document() -> Document {
    let long = |numbers: &[i64]| numbers.iter().map(|number| Value::Long(*number)).collect::<Vec<_>>();
    Document {
        fields: [
            ("a", long(&[3])),
            ("many", long(&[1, 2, 3])),
            ("none", Vec::new()),
            ("name", vec![Value::text("four")]),
            ("date", vec![Value::date(1_714_979_289_000_000_000)]),
            ("place", vec![Value::map([("lat", Value::Double(48.5)), ("lon", Value::Double(11.5))])]),
        ]
        .into(),
        ..Document::default()
    }
}

fn machine(source: &str) -> Machine {
    let script = Script::compile(source, &SCORE).unwrap_or_else(|error| panic!("{source}: {error}"));
    let params = json!({"f": 2.5, "v": [1, 2.5], "name": "a"}).as_object().cloned();
    let mut machine = Machine::new(Arc::new(script), params.map(Arc::new));
    machine.set("_score", Value::Double(0.5));
    machine
}

#[test]
fn fields_are_read() {
    for (script, expected) in [
        ("doc['a'].value * params.f + _score", "8.0"),
        ("doc.a.value", "3"),
        ("doc['a'].size() + doc['many'].length", "4"),
        ("doc['a'].empty || doc['none'].isEmpty()", "true"),
        ("doc['none'].size() == 0 ? 7 : doc['none'].value", "7"),
        ("doc['many'][2] + doc['many'].get(0) + doc['many'][-1]", "7"),
        ("double t = 0; for (def x : doc['many']) { t += x } t", "6.0"),
        ("int t = 0; for (int i = 0; i < doc['many'].length; i++) { t += (int) doc['many'][i] } t", "6"),
        ("doc['many'].stream().mapToLong(x -> x).sum() + doc['many'].values.size()", "9"),
        ("doc['many'].contains(2L) + ' ' + doc['many'].values", "true [1, 2, 3]"),
        ("doc.containsKey('a') + ' ' + doc.containsKey('zz')", "true false"),
        ("doc[params.name].value", "3"),
        ("def d = doc; d['a'].value", "3"),
        ("doc['name'].value.length() <= 4", "true"),
        ("doc['date'].value.year + '-' + doc['date'].value.getMonthValue()", "2024-5"),
        ("doc['date'].value.toInstant().toEpochMilli()", "1714979289000"),
        ("doc['date'].value.getDayOfWeekEnum().getValue()", "1"),
        ("doc['place'].arcDistance(1, 2) + doc['place'].lat + doc['place'].value.lon", "63.0"),
        ("field('a').get(9) + field('none').get(9) + field('zz').get(9)", "21"),
        ("$('a', 9) + $('none', 9) + $('zz', 9)", "21"),
        ("field('many').get(1, 0) + field('many').get(7, 40)", "42"),
        ("field('zz').isEmpty() && field('many').size() == 3", "true"),
        ("int t = 0; for (x in field('many')) { t += x } t", "6"),
        ("saturation(doc['a'].value, 1) + Math.log(1)", "0.75"),
        ("dotProduct(params.v, 'vector') + 1.0", "4.5"),
        ("if (doc['a'].value > 2) { return Math.sqrt(16) } return 0", "4.0"),
    ] {
        let mut machine = machine(script);
        let value = machine.run(&mut document()).unwrap_or_else(|error| panic!("{script}: {error}"));
        assert_eq!(machine.to_text(&value).unwrap(), expected, "{script}");
    }
}

#[test]
fn what_a_document_lacks_is_named() {
    let no_value = "A document doesn't have a value for a field! Use doc[<field>].size()==0 to check if a document is \
                    missing a field!";
    for (script, kind, reason) in [
        ("doc['zz'].value", "illegal_argument_exception", "No field found for [zz] in mapping"),
        ("doc['zz']", "illegal_argument_exception", "No field found for [zz] in mapping"),
        ("doc['none'].value", "illegal_state_exception", no_value),
        ("doc['none'][0]", "illegal_state_exception", no_value),
        ("doc['none'].get(0)", "illegal_state_exception", no_value),
        ("doc['many'].get(3)", "index_out_of_bounds_exception", "Index 3 out of bounds for length 3"),
        ("dotProduct(1, 2)", "illegal_argument_exception", "no vector"),
        (
            "doc['a'].foo()",
            "illegal_argument_exception",
            "dynamic method [org.elasticsearch.index.fielddata.ScriptDocValues, foo/0] not found",
        ),
    ] {
        let error = machine(script).run(&mut document()).unwrap_err();
        let shown = error.exception().to_json();
        assert_eq!(shown["caused_by"]["type"], kind, "{script}");
        assert_eq!(shown["caused_by"]["reason"], reason, "{script}");
    }
}

#[test]
fn a_script_says_what_it_reads() {
    let script =
        Script::compile("doc['a'].value + doc.b.value + field('c').get(0) + doc['a'].size()", &SCORE)
            .unwrap();
    let names: Vec<&str> = script.doc_fields().iter().map(|name| &**name).collect();
    assert_eq!((names, script.reads_other_fields()), (vec!["a", "b", "c"], false));
    let uses = ["doc", "_score", "params", "emit"].map(|name| script.uses(name));
    assert_eq!(uses, [true, false, false, false]);
    let script = Script::compile("doc[params.x].size() == 0 ? _score : saturation(1, 2)", &SCORE).unwrap();
    assert!(
        script.reads_other_fields()
            && script.uses("_score")
            && script.uses("params")
            && script.uses("saturation")
    );
    // The host is given the position of the name.
    let mut document = document();
    machine("doc['many'].size() + doc['a'].value + doc[params.name].value").run(&mut document).unwrap();
    assert_eq!(document.asked, [Some(0), Some(1), Some(1)]);
    let mut document = self::document();
    machine("for (x in doc['many']) { emit(x * 2) } emit(7)").run(&mut document).unwrap();
    assert_eq!(document.emitted, [2.0, 4.0, 6.0, 7.0]);
}

#[test]
fn what_is_not_declared_is_refused() {
    for (script, reason) in [
        ("ctx.a", "cannot resolve symbol [ctx]"),
        ("cosineSimilarity(params.v, 'v')", "Unknown call [cosineSimilarity] with [2] arguments."),
        ("saturation(1)", "Unknown call [saturation] with [1] arguments."),
    ] {
        let error = Script::compile(script, &SCORE).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("compile error: {reason} at line [1], column [1]")),
            "{script}: {error}"
        );
    }
}
