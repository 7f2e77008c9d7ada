use std::sync::Arc;
use std::time::Instant;
use serde_json::json;
use sparrow_scripts::*;
const SCORE: Context = Context { name: "score", variables: &["doc", "_score", "ctx"], functions: &[] };
struct D(i64);
impl Host for D {
    fn has_field(&mut self, _: &Field) -> Result<bool, Fault> { Ok(true) }
    fn count(&mut self, _: &Field) -> Result<usize, Fault> { Ok(1) }
    fn value(&mut self, _: &Field, _: usize) -> Result<Value, Fault> { self.0 += 1; Ok(Value::Long(self.0)) }
}
#[test]
#[ignore]
fn speed() {
    let params = json!({"f": 2.5, "tag": "x"}).as_object().cloned().map(Arc::new);
    for source in ["doc['a'].value * params.f + _score", "doc['a'].value", "_score", "doc['a'].size() == 0 ? 0 : Math.log(2 + doc['a'].value) * _score", "double t = 0; for (int i = 0; i < 100; i++) { t += i * 2 } t", "int f(int n) { if (n < 2) { return n } return f(n - 1) + f(n - 2) } f(15)"] {
        let mut m = Machine::new(Arc::new(Script::compile(source, &SCORE).unwrap()), params.clone());
        let mut d = D(0);
        let n = if source.len() > 60 { 100_000 } else { 2_000_000 };
        let b = Instant::now();
        for _ in 0..n { m.set("_score", Value::Double(1.5)); m.run(&mut d).unwrap(); }
        eprintln!("{:.1} ns  {source}", b.elapsed().as_nanos() as f64 / n as f64);
    }
    let source = "ctx._source.count += 1; ctx._source.tags.add(params.tag)";
    let script = Arc::new(Script::compile(source, &SCORE).unwrap());
    let doc = json!({"_source": {"count": 1, "tags": ["a"], "title": "some title of a document", "body": "longer text ".repeat(50)}});
    let b = Instant::now();
    for _ in 0..200_000 { let mut m = Machine::new(script.clone(), params.clone()); let c = Value::from_json(&doc); m.set("ctx", c.clone()); m.run(&mut ()).unwrap(); m.to_json(&c).unwrap(); }
    eprintln!("{:.1} ns  update with conversion", b.elapsed().as_nanos() as f64 / 200_000.0);
    for depth in [10, 50, 100, 200, 400, 800, 1600] {
        let source = format!("def f(def n) {{ if (n > 0) {{ return [n].stream().map(x -> f(x - 1)).collect(Collectors.toList()).size() }} return 0 }} f({depth})");
        let simple = format!("int f(int n) {{ if (n > 0) {{ return f(n - 1) + 1 }} return 0 }} f({depth})");
        for s in [source, simple] {
            let mut m = Machine::new(Arc::new(Script::compile(&s, &SCORE).unwrap()), None);
            eprintln!("{depth} {}", m.run(&mut ()).is_ok());
        }
    }
    let b = Instant::now();
    for _ in 0..10_000 { Script::compile("if (ctx._source.tags.contains(params.tag)) { ctx._source.tags.remove(ctx._source.tags.indexOf(params.tag)) } else { ctx.op = 'none' }", &SCORE).unwrap(); }
    eprintln!("{:.1} ns compile", b.elapsed().as_nanos() as f64 / 10_000.0);
}
