//! kubectl is the witness for its dialect: a table of expressions and documents with what ours gives and what kubectl
//! prints. The table is asserted by itself, and checked against the real kubectl where there is one.
//!
//! The witness is `kubectl label --local`, which needs no server. It adds the label `x=y`, which all documents have
//! already, so it adds nothing.

use std::{path::Path, process::Command};

use k8s_indexer::Expression;
use k8s_packed::Object;

const POD: &str = r#"{"apiVersion": "v1", "kind": "Pod",
  "metadata": {"name": "a", "namespace": "n",
    "labels": {"app.kubernetes.io/name": "n1", "k8s-app": "d", "web/html": "w", "x": "y"},
    "annotations": {"0": "zero", "a b": "space", "a:b": "col", "a,b": "comma", "it's": "quote", "ä": "uml", "empty": ""}},
  "spec": {"nodeName": null, "hostNetwork": true, "containers": [
    {"name": "c1", "image": "i1", "ports": [{"containerPort": 80}, {"containerPort": 8080}]},
    {"name": "c2", "image": "i2", "tty": true}]},
  "status": {"conditions": [
    {"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "False"}]}}"#;

const INGRESS: &str = r#"{"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
  "metadata": {"name": "shop", "namespace": "shop", "labels": {"x": "y"}},
  "spec": {"ingressClassName": "haproxy", "tls": [], "rules": [
    {"host": "a.example", "http": {"paths": [
      {"path": "/", "backend": {"service": {"name": "web", "port": {"number": 80}}}},
      {"path": "/api", "backend": {"service": {"name": "api", "port": {"number": 8080}}}}]}},
    {"host": "b.example", "http": {"paths": [
      {"path": "/", "backend": {"service": {"name": "blog", "port": {"name": "http"}}}}]}},
    {"http": {"paths": []}}]}}"#;

const NUMBERS: &str = r#"{"apiVersion": "example.com/v1", "kind": "Widget",
  "metadata": {"name": "w", "labels": {"x": "y"}},
  "spec": {"int": 8080, "whole": 8080.0, "exp": 1e3, "text": "8080", "negative": -5, "minusZero": -0.0,
    "big": 9007199254740993, "uint": 18446744073709551615, "tenth": 0.1, "quarter": 1.25, "tiny": 1.5e-9,
    "million": 1000000.0, "huge": 1e300, "yes": true, "no": false, "yesText": "true", "nothing": null,
    "list": [], "map": {}, "empty": "", "mixed": [1, 1.0, "1", true, null, [2], {"a": 3}],
    "matrix": [[1, 2], [3]]}}"#;

/// What kubectl does with the expression.
enum Kubectl {
    /// Prints our values joined by blanks.
    Same,
    /// Prints this instead, for the reason given.
    Prints(&'static str, &'static str),
    /// Fails with a message that contains this, for the reason given.
    Fails(&'static str, &'static str),
}
use Kubectl::{Fails, Prints, Same};

const NULL: &str = "null is no value";
const COMPOSITE: &str = "maps and arrays are no values";
const STRICT_INDEX: &str = "an index beyond the array gives nothing";
const CLAMPS: &str = "slices clamp";
const NO_ARRAY: &str = "an index, wildcard or filter where there is no array gives nothing";
const BRACKETS: &str = "quoted names are taken as they are";
const FLOAT: &str = "one text for each number: no exponent between 1e-7 and 1e21, no sign for zero";
const UNION: &str = "a union goes item by item";
const TYPES: &str = "values of different types are unequal";
const SUPERSET: &str = "kubectl's parser is narrower";

type Row = (&'static str, &'static [&'static str], Kubectl);

const POD_ROWS: &[Row] = &[
    // The start.
    ("metadata.name", &["a"], Same),
    (".metadata.name", &["a"], Same),
    ("{.metadata.name}", &["a"], Same),
    ("{ .metadata.name }", &["a"], Same),
    ("{$.metadata.name}", &["a"], Same),
    ("{@.metadata.name}", &["a"], Same),
    ("@.metadata.name", &["a"], Same),
    ("kind", &["Pod"], Same),
    ("apiVersion", &["v1"], Same),
    ("['metadata']['name']", &["a"], Same),
    ("{metadata.name}", &["a"], Fails("unrecognized identifier", "kubectl takes it for custom columns only")),
    // Names.
    (r"metadata.labels.app\.kubernetes\.io/name", &["n1"], Same),
    (r"metadata.labels['app\.kubernetes\.io/name']", &["n1"], Same),
    (r"metadata.labels.app\.kubernetes\.io\/name", &["n1"], Same),
    ("metadata.labels['app.kubernetes.io/name']", &["n1"], Prints("", BRACKETS)),
    ("metadata.labels['k8s-app']", &["d"], Same),
    ("metadata.labels[\"k8s-app\"]", &["d"], Fails("invalid array index", BRACKETS)),
    ("metadata['labels']['k8s-app']", &["d"], Same),
    ("metadata.labels.k8s-app", &["d"], Same),
    ("metadata.labels.web/html", &["w"], Same),
    ("metadata.annotations.a:b", &["col"], Same),
    ("metadata.annotations.ä", &["uml"], Same),
    ("metadata.annotations.0", &["zero"], Same),
    (r"metadata.annotations.a\ b", &["space"], Same),
    (r"metadata.annotations['a\ b']", &["space"], Same),
    ("metadata.annotations['a b']", &["space"], Fails("unrecognized identifier", BRACKETS)),
    ("metadata.annotations['a,b']", &["comma"], Fails("invalid array index", BRACKETS)),
    (r"metadata.annotations.it\'s", &["quote"], Same),
    (r"metadata.annotations['it\'s']", &["quote"], Fails("invalid array index", BRACKETS)),
    ("metadata.annotations.empty", &[""], Same),
    // Missing and mistyped.
    ("metadata.nope", &[], Same),
    ("metadata.labels.nope", &[], Same),
    ("metadata.name.first", &[], Same),
    ("spec.containers.name", &[], Same),
    ("spec.nodeName", &[], Prints("null", NULL)),
    (
        "metadata.labels",
        &[],
        Prints(r#"{"app.kubernetes.io/name":"n1","k8s-app":"d","web/html":"w","x":"y"}"#, COMPOSITE),
    ),
    ("metadata[0]", &[], Fails("is not array or slice", NO_ARRAY)),
    ("metadata.name[0]", &[], Fails("is not array or slice", NO_ARRAY)),
    // Indexes and wildcards.
    ("spec.containers[0].name", &["c1"], Same),
    ("spec.containers[1].name", &["c2"], Same),
    ("spec.containers[01].name", &["c2"], Same),
    ("spec.containers[ 1 ].name", &["c2"], Fails("invalid array index", SUPERSET)),
    ("spec.containers[-1].name", &["c2"], Same),
    ("spec.containers[-2].name", &["c1"], Same),
    ("spec.containers[2].name", &[], Fails("array index out of bounds", STRICT_INDEX)),
    ("spec.containers[-3].name", &[], Fails("array index out of bounds", STRICT_INDEX)),
    ("spec.containers[*].name", &["c1", "c2"], Same),
    ("spec.containers.*.name", &["c1", "c2"], Same),
    ("spec.containers[*].ports[*].containerPort", &["80", "8080"], Same),
    ("spec.containers[*].ports[0].containerPort", &["80"], Same),
    ("spec.containers[0].ports[1].containerPort", &["8080"], Same),
    ("spec.containers[0].ports.*.containerPort", &["80", "8080"], Same),
    ("metadata[*]", &["a", "n"], Fails("is not array or slice", "[*] takes the values of a map too")),
    // Slices.
    ("spec.containers[0:1].name", &["c1"], Same),
    ("spec.containers[:1].name", &["c1"], Same),
    ("spec.containers[1:].name", &["c2"], Same),
    ("spec.containers[:].name", &["c1", "c2"], Same),
    ("spec.containers[0:2].name", &["c1", "c2"], Same),
    ("spec.containers[-1:].name", &["c2"], Same),
    ("spec.containers[0:-1].name", &["c1"], Same),
    ("spec.containers[-2:-1].name", &["c1"], Same),
    ("spec.containers[::2].name", &["c1"], Same),
    ("spec.containers[0:2:1].name", &["c1", "c2"], Same),
    ("spec.containers[0:0].name", &[], Same),
    ("spec.containers[0:5].name", &["c1", "c2"], Fails("array index out of bounds", CLAMPS)),
    ("spec.containers[3:5].name", &[], Fails("array index out of bounds", CLAMPS)),
    ("spec.containers[1:0].name", &[], Fails("greater than ending index", CLAMPS)),
    // Unions.
    ("spec.containers[0,1].name", &["c1", "c2"], Same),
    ("spec.containers[1,0].name", &["c2", "c1"], Same),
    ("spec.containers[ 0, 1 ].name", &["c1", "c2"], Same),
    ("spec.containers[-1,0:1].name", &["c2", "c1"], Same),
    ("spec.containers[0]['name','image']", &["c1", "i1"], Same),
    ("metadata['name','namespace']", &["a", "n"], Same),
    ("metadata['name','nope']", &["a"], Same),
    (r"metadata.labels['x','app\.kubernetes\.io/name']", &["y", "n1"], Same),
    ("spec.containers[0,5].name", &["c1"], Fails("array index out of bounds", STRICT_INDEX)),
    ("spec.containers[*]['name','image']", &["c1", "i1", "c2", "i2"], Prints("c1 c2 i1 i2", UNION)),
    // Recursive descent.
    ("..containerPort", &["80", "8080"], Same),
    ("spec..containerPort", &["80", "8080"], Same),
    ("spec.containers[1]..name", &["c2"], Same),
    ("{..hostNetwork}", &["true"], Same),
    ("metadata..name", &["a"], Same),
    ("spec..ports[0].containerPort", &["80"], Same),
    ("spec..['hostNetwork']", &["true"], Same),
    ("..conditions[?(@.type==\"Ready\")].status", &["False"], Same),
    ("spec..[0].name", &["c1"], Fails("is not array or slice", NO_ARRAY)),
    ("spec.containers[0].ports[0]..*", &["80"], Fails("unrecognized character", SUPERSET)),
    // Filters.
    ("status.conditions[?(@.type==\"Ready\")].status", &["False"], Same),
    ("status.conditions[?(@.type=='Ready')].status", &["False"], Same),
    ("status.conditions[?(@.type == \"Ready\")].status", &["False"], Same),
    ("status.conditions[?(@.type!=\"Ready\")].type", &["Initialized"], Same),
    ("status.conditions[?(@.nope!=\"Ready\")].type", &[], Same),
    ("status.conditions[?(\"Ready\"==@.type)].status", &["False"], Same),
    ("status.conditions[?(@.type<\"M\")].type", &["Initialized"], Same),
    ("spec.containers[?(@.ports)].name", &["c1"], Same),
    ("spec.containers[?(@.ports[0])].name", &["c1"], Same),
    ("spec.containers[?(@.ports[0].containerPort==80)].name", &["c1"], Same),
    ("spec.containers[0].ports[?(@.containerPort>80)].containerPort", &["8080"], Same),
    ("spec.containers[0].ports[?(@.containerPort>=80)].containerPort", &["80", "8080"], Same),
    ("spec.containers[0].ports[?(@.containerPort<=80)].containerPort", &["80"], Same),
    ("spec.containers[?(@.name==@.image)].name", &[], Same),
    ("spec.containers[?(@.nope==@.neither)].name", &[], Same),
    ("spec.containers[?(@.tty==true)].name", &["c2"], Same),
    ("spec.containers[?(@.ports[0].containerPort==\"80\")].name", &[], Fails("incompatible types", TYPES)),
    ("metadata.labels[?(@==\"d\")]", &["d"], Fails("is not array or slice", "a filter takes the values of a map too")),
    ("spec.hostNetwork[?(@.a)]", &[], Fails("is not array or slice", NO_ARRAY)),
];

const INGRESS_ROWS: &[Row] = &[
    ("spec.rules[*].host", &["a.example", "b.example"], Same),
    ("spec.rules[0].host", &["a.example"], Same),
    ("spec.rules[2].host", &[], Same),
    ("spec.tls[*].secretName", &[], Same),
    ("spec.tls[0].secretName", &[], Fails("array index out of bounds", STRICT_INDEX)),
    ("spec.tls[-1:].secretName", &[], Fails("array index out of bounds", CLAMPS)),
    ("spec.rules[*].http.paths[*].backend.service.name", &["web", "api", "blog"], Same),
    ("spec.rules[0:2].http.paths[0].path", &["/", "/"], Same),
    ("spec.rules[?(@.host==\"b.example\")].http.paths[*].backend.service.name", &["blog"], Same),
    ("spec.rules[*].http.paths[?(@.path==\"/\")].backend.service.name", &["web", "blog"], Same),
    ("spec.rules[*].http.paths[?(@.backend.service.port.number)].path", &["/", "/api"], Same),
    ("spec.rules..number", &["80", "8080"], Same),
    ("spec.rules[-1:].host", &[], Same),
    ("spec.rules[?(@.host)].host", &["a.example", "b.example"], Same),
    ("spec.rules[*].http.paths[*].backend.service.port['number','name']", &["80", "8080", "http"], Same),
];

const NUMBER_ROWS: &[Row] = &[
    ("spec.int", &["8080"], Same),
    ("spec.whole", &["8080"], Same),
    ("spec.exp", &["1000"], Same),
    ("spec.text", &["8080"], Same),
    ("spec.negative", &["-5"], Same),
    ("spec.big", &["9007199254740993"], Same),
    ("spec.tenth", &["0.1"], Same),
    ("spec.quarter", &["1.25"], Same),
    ("spec.yes", &["true"], Same),
    ("spec.no", &["false"], Same),
    ("spec.yesText", &["true"], Same),
    ("spec.empty", &[""], Same),
    ("spec.minusZero", &["0"], Prints("-0", FLOAT)),
    ("spec.million", &["1000000"], Prints("1e+06", FLOAT)),
    ("spec.tiny", &["1.5e-9"], Prints("1.5e-09", FLOAT)),
    ("spec.huge", &["1e300"], Prints("1e+300", FLOAT)),
    ("spec.uint", &["18446744073709551615"], Prints("1.8446744073709552e+19", "integers are exact up to u64")),
    ("spec.nothing", &[], Prints("null", NULL)),
    ("spec.list", &[], Prints("[]", COMPOSITE)),
    ("spec.map", &[], Prints("{}", COMPOSITE)),
    ("spec.mixed[*]", &["1", "1", "1", "true"], Prints(r#"1 1 1 true null [2] {"a":3}"#, COMPOSITE)),
    ("spec.matrix[*][*]", &["1", "2", "3"], Same),
    ("spec.matrix[0][1]", &["2"], Same),
    ("spec.matrix[*][0]", &["1", "3"], Same),
    ("spec.matrix[1:][0]", &["3"], Same),
];

const TABLE: [(&str, &str, &[Row]); 3] =
    [("pod", POD, POD_ROWS), ("ingress", INGRESS, INGRESS_ROWS), ("numbers", NUMBERS, NUMBER_ROWS)];

/// Expressions that both refuse, or that ours refuses with a better reason than kubectl's silence.
const REFUSED: &[(&str, &str)] = &[
    ("{.metadata.name", "unclosed '{' at column 1"),
    ("{.metadata.name}{.kind}", "second group of braces at column 17: a path is one expression"),
    (
        "{range .spec.containers[*]}{.name}{end}",
        "template command 'range' at column 2: a path is one expression, use [*]",
    ),
    ("spec.containers[name]", "name without quotes in brackets at column 17: write ['name']"),
    ("spec.containers[0", "unclosed '[' at column 16"),
    (
        "spec.containers[::0].name",
        "slice with a step below 1 at column 19: an expression that begins with '$' may count backwards",
    ),
    (
        "spec.containers[::-1].name",
        "slice with a step below 1 at column 19: an expression that begins with '$' may count backwards",
    ),
    ("spec.containers[99999999999999999999].name", "index out of range at column 17"),
];

#[test]
fn the_table_holds() {
    let mut rows = 0;
    for (name, document, table) in TABLE {
        let object = Object::from_slice(document.as_bytes()).expect("document");
        for (text, ours, kubectl) in table {
            let expression: Expression = text.parse().unwrap_or_else(|error| panic!("{name}: {text}: {error}"));
            assert_eq!(expression.values(&object), *ours, "{name}: {text}");
            if let Prints(_, reason) | Fails(_, reason) = kubectl {
                assert!(!reason.is_empty());
            }
            rows += 1;
        }
    }
    assert!(rows >= 80, "{rows} rows");
    for (text, expected) in REFUSED {
        assert_eq!(k8s_indexer::validate(text).expect_err(text).to_string(), *expected);
    }
}

#[test]
fn the_real_kubectl_agrees_with_the_table() {
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        // The table stands by itself; this machine has no witness to call.
        return;
    }
    let folder = std::env::temp_dir().join(format!("k8s-indexer-kubectl-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("folder");
    let outcome = std::panic::catch_unwind(|| TABLE.iter().for_each(|table| compare(&folder, table)));
    std::fs::remove_dir_all(&folder).expect("folder");
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

fn compare(folder: &Path, (name, document, table): &(&str, &str, &[Row])) {
    let file = folder.join(format!("{name}.json"));
    std::fs::write(&file, document).expect("document");
    // One process for all expressions that print: text between them is a template's business, which kubectl has.
    let mut template = String::new();
    let mut expected = Vec::new();
    for (text, ours, kubectl) in *table {
        match kubectl {
            Same => expected.push((text, ours.join(" "))),
            Prints(printed, _) => expected.push((text, (*printed).to_owned())),
            Fails(message, _) => {
                let (ok, output) = run(&file, &braced(text));
                assert!(!ok && output.contains(message), "{name}: {text}: kubectl: {output}");
                continue;
            }
        }
        template += &braced(text);
        template.push('\n');
    }
    let (ok, output) = run(&file, &template);
    assert!(ok, "{name}: kubectl: {output}");
    let printed: Vec<&str> = output.strip_suffix('\n').unwrap_or(&output).split('\n').collect();
    assert_eq!(printed.len(), expected.len(), "{name}: kubectl: {output}");
    for (printed, (text, expected)) in printed.iter().zip(&expected) {
        assert_eq!(printed, expected, "{name}: kubectl: {text}");
    }
}

fn run(file: &Path, template: &str) -> (bool, String) {
    let output = Command::new("kubectl")
        .args(["label", "--local", "x=y", "-f"])
        .arg(file)
        .arg("-o")
        .arg(format!("jsonpath={template}"))
        .output()
        .expect("kubectl");
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// The form in which `-o jsonpath` takes an expression: in braces, with a dot before the first name.
fn braced(text: &str) -> String {
    match text.chars().next() {
        Some('{') => text.to_owned(),
        Some('.' | '[' | '@') => format!("{{{text}}}"),
        _ => format!("{{.{text}}}"),
    }
}
