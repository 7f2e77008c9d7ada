//! What a hostile author may try.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::json;
use sparrow_runtime::work::{self, Memory, Probe, Stopped, Work};
use sparrow_scripts::{Limits, Machine, Script, ScriptError, Value};

use super::{TEST, refusal, result, run};

const STEPS: &str = "The maximum number of statements that can be executed in a loop has been reached.";

#[test]
fn endless_loops_and_calls_end() {
    for script in [
        "while (true) { }",
        "for (;;) { }",
        "do { } while (true)",
        "def l = [1]; def it = l.iterator(); while (it.hasNext()) { ctx.x = 1 }",
        "def f(int n) { if (n > 0) { f(n - 1); f(n - 1) } } f(25)",
        "for (int i = 0; i < 2000; i++) { Collections.nCopies(100000, 1).contains(2) }",
        "IntStream.range(0, 1500000).filter(x -> x > 5).map(x -> x * 2).sum()",
        "def s = 'x'.repeat(30000000); for (int i = 0; i < 1000; i++) { s.toUpperCase() }",
    ] {
        let probe = Probe::new(u64::MAX);
        Probe::set(Some(Arc::clone(&probe)));
        let work = Work::new(Arc::default(), Memory::new(1 << 30, 1 << 30).into(), "script");
        let entered = work::enter(Some(work));
        assert_eq!(refusal(script), ("painless_error".into(), STEPS.into()), "{script}");
        drop(entered);
        Probe::set(None);
        // A run looks whether it must stop after 256 steps or more, and may take a million.
        assert!((1..5_000).contains(&probe.checks()), "{script}: {}", probe.checks());
    }
    // Nor can an error be caught that says so.
    assert_eq!(refusal("try { while (true) { } } catch (Exception e) { 5 }").0, "painless_error");
    assert_eq!(refusal("def f(def x) { f(x) } f(1)").0, "stack_overflow_error");
    assert_eq!(refusal("def f(def x) { [1].each(y -> f(y)) } f(1)").0, "stack_overflow_error");
}

#[test]
fn memory_is_bounded() {
    for script in [
        "new int[2000000000]",
        "new int[60000][60000]",
        "'x'.repeat(2000000000)",
        "def s = 'x'; while (true) { s += s }",
        "def l = ['x'.repeat(1000000)]; String.join('y'.repeat(1000000), Collections.nCopies(1000, 'x'))",
        "'x'.repeat(100000).replace('x', 'y'.repeat(100000))",
        "'x'.repeat(100000).replaceAll(/x/, m -> 'y'.repeat(100000))",
        "def b = new StringBuilder('abc'); while (true) { b.append(b) }",
        "def b = new StringBuilder(); b.setLength(2000000000)",
        "def l = ['x'.repeat(1000)]; while (true) { l.addAll(l) }",
        "def l = ['x'.repeat(100000)]; for (int i = 0; i < 40; i++) { l = [l, l] } l.toString()",
        "def m = [:]; for (int i = 0; i < 900000; i++) { m[i] = 'x'.repeat(100) }",
        "Collections.nCopies(2000000000, 1)",
        "IntStream.range(0, 2000000000).sum()",
        "String.format('%09999d'.repeat(100000), new def[]{1})",
    ] {
        let (kind, reason) = refusal(script);
        assert!(
            kind == "painless_error" || kind == "missing_format_argument_exception",
            "{script}: {kind}, {reason}"
        );
    }
    // What is freed can be used again.
    assert_eq!(result("for (int i = 0; i < 150; i++) { def s = 'x'.repeat(1000000) } 5").unwrap(), "5");
}

#[test]
fn other_limits_can_be_given() {
    let script = Arc::new(Script::compile("for (int i = 0; i < 1000; i++) { ctx.l.add(i) }", &TEST).unwrap());
    let run = |limits: Limits| {
        let mut machine = Machine::new(Arc::clone(&script), None).with_limits(limits);
        machine.set("ctx", Value::from_json(&json!({"l": []})));
        machine.run(&mut ()).map(|_| ())
    };
    run(Limits { steps: 10_000, memory: 100_000 }).unwrap();
    assert!(run(Limits { steps: 1_000, memory: 100_000 }).unwrap_err().to_string().contains(STEPS));
    assert!(run(Limits { steps: 10_000, memory: 10_000 }).unwrap_err().to_string().contains("[10000] bytes"));
}

#[test]
fn collections_may_contain_themselves() {
    assert_eq!(result("def l = []; l.add(l); l.toString()").unwrap(), "[(this Collection)]");
    assert_eq!(result("def m = [:]; m.me = m; m.toString()").unwrap(), "{me=(this Map)}");
    for script in [
        "def a = []; def b = [a]; a.add(b); a.toString()",
        "def a = []; a.add(a); def b = []; b.add(b); a == b",
        "def a = []; a.add(a); a.hashCode()",
        "def a = []; a.add(a); new HashSet().add(a)",
        "def a = [:]; a.b = [a]; [1].contains(a); 'x' + a",
    ] {
        let (kind, _) = refusal(script);
        assert!(
            matches!(kind.as_str(), "stack_overflow_error" | "illegal_argument_exception"),
            "{script}: {kind}"
        );
    }
    for script in ["ctx.me = ctx", "ctx.l = [[ctx]]", "def l = []; l.add(l); ctx.l = l"] {
        let error = run(script, &json!({}), &json!({})).unwrap_err().to_string();
        assert!(
            error.starts_with("runtime error: Iterable object is self-referencing itself"),
            "{script}: {error}"
        );
    }
    // The same twice is no circle.
    assert_eq!(
        run("def l = [1]; ctx.a = l; ctx.b = [l, l]", &json!({}), &json!({})).unwrap().1.to_string(),
        r#"{"a":[1],"b":[[1],[1]]}"#
    );
    // Nor may it grow without end where it is converted.
    let doubled = "def l = ['x'.repeat(1000)]; for (int i = 0; i < 40; i++) { l = [l, l] } ctx.l = l";
    assert!(run(doubled, &json!({}), &json!({})).unwrap_err().to_string().contains(STEPS));
}

#[test]
fn deep_structures_are_made_and_freed() {
    for script in [
        "def l = []; for (int i = 0; i < 300000; i++) { l = [l] } 5",
        "def m = [:]; for (int i = 0; i < 100000; i++) { m = ['m': m] } 5",
        "def o = null; for (int i = 0; i < 100000; i++) { o = Optional.of(o == null ? 1 : o) } 5",
        "def s = new HashSet(); def l = []; for (int i = 0; i < 100000; i++) { def n = [l]; l = n } 5",
        "def e = 1; for (int i = 0; i < 100000; i++) { def m = ['k': e]; e = m.entrySet().iterator().next() } 5",
        "def e = [1]; for (int i = 0; i < 100000; i++) { e = [e.iterator()] } 5",
        "def e = [1]; for (int i = 0; i < 100000; i++) { e = [e.stream()] } 5",
    ] {
        let found = result(script);
        assert_eq!(found.unwrap_or_else(|error| panic!("{script}: {error}")), "5");
    }
    assert_eq!(
        refusal("def l = []; for (int i = 0; i < 100000; i++) { l = [l] } l.toString()").0,
        "stack_overflow_error"
    );
    let deep = run("def l = []; for (int i = 0; i < 300; i++) { l = [l] } ctx.l = l", &json!({}), &json!({}));
    assert!(deep.unwrap_err().to_string().contains("nested deeper than [127] levels"));
}

#[test]
fn long_and_deep_scripts_are_read_or_refused() {
    // On a stack as threads have it.
    let chain = vec!["1"; 30_000].join("+");
    assert_eq!(result(&chain).unwrap(), "30000");
    assert_eq!(result(&vec!["true"; 10_000].join("&&")).unwrap(), "true");
    assert_eq!(result(&format!("def x = null; {} ?: 5", vec!["x"; 12_000].join("?:"))).unwrap(), "5");
    assert_eq!(result(&format!("ctx{}", "?.a".repeat(20_000))).unwrap(), "null");
    assert_eq!(result(&format!("def i = 5; {} 7", "i == 6 ? 1 : ".repeat(4_000))).unwrap(), "7");
    let ladder = "if (i == 6) { return 1 } else ".repeat(2_000);
    assert_eq!(result(&format!("def i = 5; {ladder} {{ return 7 }}")).unwrap(), "7");
    for deep in [
        "(".repeat(60_000),
        format!("{}1{}", "(".repeat(5_000), ")".repeat(5_000)),
        "[".repeat(60_000),
        "{".repeat(60_000),
        "-".repeat(60_000) + " 1",
        format!("{}1", "!".repeat(60_000)),
        "x -> ".repeat(10_000),
        "if (true) ".repeat(6_000),
        "f(".repeat(30_000),
        "a[".repeat(30_000),
        "ctx.x = ".repeat(8_000),
        "(int)".repeat(12_000) + "1",
    ] {
        let (kind, reason) = refusal(&deep);
        assert_eq!(kind, "illegal_argument_exception");
        assert!(
            ["nested deeper", "cannot resolve symbol", "already defined"]
                .iter()
                .any(|known| reason.contains(known)),
            "{reason}"
        );
    }
    let nested = format!("{}1{}", "(".repeat(45), ")".repeat(45));
    assert_eq!(result(&nested).unwrap(), "1");
    assert!(refusal(&"a".repeat(65_536)).1.starts_with("Scripts may be no longer than 65535 characters."));
    assert_eq!(result(&format!("5 // {}", "a".repeat(65_000))).unwrap(), "5");
}

#[test]
fn expressions_that_backtrack_are_refused_by_name() {
    for (script, named) in [
        ("'a' =~ /(?=a)/", "look-ahead is not supported"),
        ("'a' =~ /(?!a)/", "look-ahead is not supported"),
        ("'a' =~ /(?<=a)b/", "look-behind is not supported"),
        ("'a' =~ /(a)\\1/", "backreferences are not supported"),
        ("'a' =~ /(?>a)/", "an atomic group is not supported"),
        ("'a' =~ /a++/", "possessive quantifiers are not supported"),
        ("'a' =~ /a{1000}{1000}{1000}/", "it would take more than"),
        ("'a' =~ /(/", "unclosed group"),
        ("'a'.split('(?=b)')", "look-ahead is not supported"),
    ] {
        let (_, reason) = refusal(script);
        assert!(reason.contains(named), "{script}: {reason}");
    }
    assert_eq!(result("'a'.repeat(30) + 'b' ==~ /(a+)+c/").unwrap(), "false");
    assert_eq!(
        result("('a'.repeat(5000) ==~ /(a|a)*b/) + ' ' + ('ab' ==~ /a|ab/) + ('x1' ==~ /[\\w&&[^y]]\\d/)")
            .unwrap(),
        "false truetrue"
    );
}

#[test]
fn a_stopped_request_stops_its_scripts() {
    let stop = Arc::new(AtomicBool::new(true));
    let _entered = work::enter(Some(Work::new(stop, Arc::new(Memory::new(1 << 30, 1 << 30)), "<test>")));
    let error = result("for (int i = 0; i < 10000; i++) { }").unwrap_err();
    assert_eq!(error, ScriptError::Stopped(Stopped::Cancelled));
    // It cannot be caught.
    let error = result("try { for (int i = 0; i < 10000; i++) { } } catch (Exception e) { }").unwrap_err();
    assert_eq!(error, ScriptError::Stopped(Stopped::Cancelled));
}

#[test]
fn circles_are_broken_and_variables_kept() {
    let script =
        "def l = []; l.add(l); def m = ['l': l]; m.m = m; l.add(m); ctx.n = ctx.n == null ? [1] : [ctx.n]; 5";
    let mut machine = Machine::new(Arc::new(Script::compile(script, &TEST).unwrap()), None);
    let ctx = Value::from_json(&json!({}));
    machine.set("ctx", ctx.clone());
    for _ in 0..3 {
        machine.run(&mut ()).unwrap();
    }
    assert_eq!(machine.to_json(&ctx).unwrap(), json!({"n": [[[1]]]}));
}

#[test]
fn constants_are_those_of_the_request_in_each_run() {
    let script = "params.l.add(4); params.n = 5; ctx.l = params.l; ctx.l.add(6); ctx.l.size()";
    let params = json!({"l": [1, 2, 3]}).as_object().cloned().map(Arc::new);
    let mut machine = Machine::new(Arc::new(Script::compile(script, &TEST).unwrap()), params);
    for _ in 0..3 {
        let ctx = Value::from_json(&json!({}));
        machine.set("ctx", ctx.clone());
        assert_eq!(machine.run(&mut ()).unwrap().as_i64(), Some(5));
        assert_eq!(machine.to_json(&ctx).unwrap(), json!({"l": [1, 2, 3, 4, 6]}));
    }
}
