//! Scripts over the documents of a segment: the fields that they read, and the functions of scores.

mod shared;

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value as Json};
use sparrow_mapping::{FieldType, KeywordKind, Mapping, ip};
use sparrow_scripts::{Fault, Field, Host, Machine, ScoreFunction, Script, ScriptError, Value};
use tantivy::columnar::{DynamicColumn, StrColumn};
use tantivy::index::SegmentId;
use tantivy::{DocId, SegmentReader};

pub use self::shared::SharedSegmentScript;
use crate::plugins::DenseReader;
use crate::schema::{keyword_column, number_column, open_columns};

/// Nanoseconds of a millisecond.
const NANOS: i128 = 1_000_000;
/// Vectors of a script that are kept as numbers.
const KEPT_VECTORS: usize = 8;

/// The vectors of each segment, by the path of their field.
pub type VectorsBySegment = FxHashMap<SegmentId, FxHashMap<String, DenseReader>>;

/// A script bound to the fields of an index, for its threads to run.
#[derive(Clone)]
pub struct DocumentScript {
    script: Arc<Script>,
    params: Option<Arc<Map<String, Json>>>,
    mapping: Arc<Mapping>,
    vectors: Arc<VectorsBySegment>,
}

impl DocumentScript {
    /// Binds a script with its constants to the documents of an index.
    pub fn new(
        script: &Arc<Script>,
        params: Option<&Arc<Map<String, Json>>>,
        mapping: &Arc<Mapping>,
        vectors: VectorsBySegment,
    ) -> Self {
        Self {
            script: Arc::clone(script),
            params: params.cloned(),
            mapping: Arc::clone(mapping),
            vectors: Arc::new(vectors),
        }
    }

    /// Whether the script asks for the score of the document.
    pub fn needs_score(&self) -> bool {
        self.script.uses("_score")
    }

    /// The script over the documents of one segment, for one thread.
    pub fn open(&self, reader: &SegmentReader) -> SegmentScript {
        SegmentScript {
            machine: Machine::new(Arc::clone(&self.script), self.params.clone()),
            fields: SegmentFields {
                script: self.clone(),
                reader: reader.clone(),
                opened: FxHashMap::default(),
                by_place: Vec::new(),
                values: None,
                queries: Vec::new(),
                compared: None,
            },
        }
    }
}

/// A script that runs over the documents of one segment.
pub struct SegmentScript {
    machine: Machine,
    fields: SegmentFields,
}

impl SegmentScript {
    /// Runs the script on a document; `score` is the document's, for a script that [needs it](DocumentScript::needs_score).
    ///
    /// # Errors
    /// When the script fails, or the request must stop.
    pub fn run(&mut self, doc: DocId, score: Option<f64>) -> Result<Value, ScriptError> {
        if let Some(score) = score {
            self.machine.set("_score", Value::Double(score));
        }
        self.machine.run(&mut OfDocument { fields: &mut self.fields, doc })
    }

    /// Gives the script other constants for the runs that follow.
    pub fn set_params(&mut self, params: Map<String, Json>) {
        self.machine = Machine::new(Arc::clone(&self.fields.script.script), Some(Arc::new(params)));
    }

    /// As [`SegmentScript::run`], as JSON.
    ///
    /// # Errors
    /// As [`SegmentScript::run`], and for a result that JSON does not have.
    pub fn json(&mut self, doc: DocId, score: Option<f64>) -> Result<Json, ScriptError> {
        let value = match self.run(doc, score)? {
            // What only refers to the document is read before the script goes on to another one.
            Value::Doc(field) => {
                let values = self.fields.values(&field, doc).map(|values| values.to_vec());
                Value::list(values.unwrap_or_default())
            }
            value => value,
        };
        self.machine.to_json(&value)
    }
}

/// Where the values of a field are.
enum Opened {
    /// The mapping has no such field.
    Unmapped,
    /// Scripts cannot read the field.
    Refused(String),
    Numbers {
        columns: Vec<DynamicColumn>,
        /// Nanoseconds that one stands for, if they are dates.
        nanos: Option<i128>,
    },
    Words {
        column: Option<StrColumn>,
        is_address: bool,
    },
    Constant(Option<Arc<str>>),
    Vectors(Option<DenseReader>),
}

/// The fields of one segment that a script has asked for.
struct SegmentFields {
    script: DocumentScript,
    reader: SegmentReader,
    opened: FxHashMap<Rc<str>, Rc<Opened>>,
    /// Those that the script names, by their place.
    by_place: Vec<Option<Rc<Opened>>>,
    /// The values that were read last, with their document and field.
    values: Option<(DocId, Rc<str>, Rc<[Value]>)>,
    /// Vectors that documents are compared with.
    queries: Vec<(Value, Rc<AskedVector>)>,
    /// The field of vectors that was asked for last, by the value that named it.
    compared: Option<(Value, Rc<Opened>)>,
}

/// A vector that documents are compared with.
struct AskedVector {
    numbers: Vec<f32>,
    length: f64,
}

impl SegmentFields {
    fn opened(&mut self, field: &Field) -> Result<Rc<Opened>, Fault> {
        if let Some(place) = field.place
            && let Some(Some(known)) = self.by_place.get(place)
        {
            return Ok(Rc::clone(known));
        }
        let opened = match self.opened.get(&field.name) {
            Some(known) => Rc::clone(known),
            None => {
                let opened = Rc::new(
                    self.open(&field.name).map_err(|error| Fault::new("i_o_exception", error.to_string()))?,
                );
                self.opened.insert(Rc::clone(&field.name), Rc::clone(&opened));
                opened
            }
        };
        if let Some(place) = field.place {
            if self.by_place.len() <= place {
                self.by_place.resize(place + 1, None);
            }
            self.by_place[place] = Some(Rc::clone(&opened));
        }
        Ok(opened)
    }

    fn open(&self, path: &str) -> tantivy::Result<Opened> {
        let columns = self.reader.fast_fields();
        let path = &*self.script.mapping.concrete(path);
        let Some(field) = self.script.mapping.field(path) else { return Ok(Opened::Unmapped) };
        let off = self.script.mapping.parameter(path, "doc_values") == Some(&Json::Bool(false));
        Ok(match field {
            FieldType::DenseVector(_) => {
                let of_segment = self.script.vectors.get(&self.reader.segment_id());
                Opened::Vectors(of_segment.and_then(|vectors| vectors.get(path)).cloned())
            }
            FieldType::Keyword { kind: KeywordKind::Constant(constant), .. } => {
                Opened::Constant(constant.clone())
            }
            _ if off => Opened::Refused(format!(
                "Can't load fielddata on [{path}] because fielddata is unsupported on fields of type [{}] without \
                 doc values. Use doc values instead.",
                field.name()
            )),
            texts if texts.has_text_column() => Opened::Words {
                column: columns.str(&keyword_column(path))?,
                is_address: matches!(field, FieldType::Ip),
            },
            FieldType::Text { .. } => Opened::Refused(format!(
                "Fielddata is disabled on [{path}]. Text fields are not optimised for operations that require \
                 per-document field data like aggregations and sorting, so these operations are disabled by \
                 default. Please use a keyword field instead."
            )),
            number
                if number.is_integer()
                    || number.is_float()
                    || matches!(number, FieldType::Boolean)
                    || matches!(number, FieldType::Date { .. } | FieldType::DateNanos { .. }) =>
            {
                let columns = open_columns(&self.reader, &number_column(path))?;
                let nanos = match number {
                    FieldType::Date { .. } => Some(NANOS),
                    FieldType::DateNanos { .. } => Some(1),
                    _ => None,
                };
                Opened::Numbers { columns, nanos }
            }
            other => Opened::Refused(format!(
                "Fielddata is not supported on field [{path}] of type [{}]",
                other.name()
            )),
        })
    }

    fn values(&mut self, field: &Field, doc: DocId) -> Result<Rc<[Value]>, Fault> {
        if let Some((of, name, values)) = &self.values
            && *of == doc
            && (Rc::ptr_eq(name, &field.name) || *name == field.name)
        {
            return Ok(Rc::clone(values));
        }
        let opened = self.opened(field)?;
        let values: Rc<[Value]> = opened.values(doc)?.into();
        self.values = Some((doc, Rc::clone(&field.name), Rc::clone(&values)));
        Ok(values)
    }

    /// The vector that a script compares documents with.
    fn query(&mut self, value: &Value) -> Result<Rc<AskedVector>, Fault> {
        if let Some((_, known)) = self.queries.iter().find(|(other, _)| other.is_same(value)) {
            return Ok(Rc::clone(known));
        }
        let numbers: Option<Vec<f32>> = value
            .elements()
            .and_then(|items| items.iter().map(|item| item.as_f64().map(|number| number as f32)).collect());
        let numbers = numbers.ok_or_else(|| Fault::illegal("the query vector must be a list of numbers"))?;
        let length = squares(&numbers).sqrt();
        let asked = Rc::new(AskedVector { numbers, length });
        if self.queries.len() >= KEPT_VECTORS {
            self.queries.remove(0);
        }
        self.queries.push((value.clone(), Rc::clone(&asked)));
        Ok(asked)
    }

    /// The field that a comparison names.
    fn compared(&mut self, name: &Value) -> Result<Rc<Opened>, Fault> {
        if let Some((value, opened)) = &self.compared
            && value.is_same(name)
        {
            return Ok(Rc::clone(opened));
        }
        let field: Rc<str> = match name {
            Value::Doc(field) => Rc::clone(&field.name),
            other => other.as_str().ok_or_else(|| Fault::illegal("the name of a field is needed"))?.into(),
        };
        let opened = self.opened(&Field { name: Rc::clone(&field), place: None })?;
        match &*opened {
            Opened::Vectors(_) => {}
            Opened::Unmapped => {
                return Err(Fault::illegal(format!("No field found for [{field}] in mapping")));
            }
            _ => {
                let kind = self.script.mapping.field(&field).map_or("", FieldType::name);
                return Err(Fault::illegal(format!("Field [{field}] of type [{kind}] has no vectors")));
            }
        }
        self.compared = Some((name.clone(), Rc::clone(&opened)));
        Ok(opened)
    }
}

impl Opened {
    /// The values of a document, ascending.
    fn values(&self, doc: DocId) -> Result<Vec<Value>, Fault> {
        let failed = |error: std::io::Error| Fault::new("i_o_exception", error.to_string());
        Ok(match self {
            Self::Unmapped => Vec::new(),
            Self::Refused(reason) => return Err(Fault::illegal(reason.as_str())),
            Self::Constant(constant) => constant.iter().map(|text| Value::text(&**text)).collect(),
            Self::Vectors(vectors) => {
                let vector = vectors.as_ref().and_then(|vectors| vectors.vector(doc));
                let list = |vector: Vec<f32>| Value::list(vector.into_iter().map(Value::Float).collect());
                vector.map(list).into_iter().collect()
            }
            Self::Words { column: None, .. } => Vec::new(),
            Self::Words { column: Some(column), is_address } => {
                let mut ords: Vec<u64> = column.term_ords(doc).collect();
                ords.sort_unstable();
                ords.dedup();
                let mut words = Vec::with_capacity(ords.len());
                for ord in ords {
                    let mut word = String::new();
                    column.ord_to_str(ord, &mut word).map_err(failed)?;
                    words.push(Value::text(if *is_address { ip::shown(&word) } else { word }));
                }
                words
            }
            Self::Numbers { columns, nanos } => {
                let mut numbers = Vec::new();
                for column in columns {
                    match column {
                        DynamicColumn::I64(column) if let Some(nanos) = nanos => numbers
                            .extend(column.values_for_doc(doc).map(|at| Value::date(i128::from(at) * nanos))),
                        DynamicColumn::I64(column) => {
                            numbers.extend(column.values_for_doc(doc).map(Value::Long))
                        }
                        DynamicColumn::U64(column) => {
                            numbers.extend(column.values_for_doc(doc).map(|value| {
                                i64::try_from(value).map_or(Value::Double(value as f64), Value::Long)
                            }))
                        }
                        DynamicColumn::F64(column) => {
                            numbers.extend(column.values_for_doc(doc).map(Value::Double))
                        }
                        DynamicColumn::Bool(column) => {
                            numbers.extend(column.values_for_doc(doc).map(Value::Bool))
                        }
                        _ => {}
                    }
                }
                if numbers.len() > 1 {
                    let key = |value: &Value| match value {
                        Value::Bool(flag) => f64::from(u8::from(*flag)),
                        other => other
                            .as_millis()
                            .map_or_else(|| other.as_f64().unwrap_or(0.0), |millis| millis as f64),
                    };
                    numbers.sort_by(|one, other| key(one).total_cmp(&key(other)));
                }
                numbers
            }
        })
    }
}

/// What a script may ask of one document.
struct OfDocument<'a> {
    fields: &'a mut SegmentFields,
    doc: DocId,
}

impl OfDocument<'_> {
    /// The vectors of a comparison: that of the script, and that of the document.
    fn compared(&mut self, arguments: &[Value]) -> Result<(Rc<AskedVector>, Vec<f32>), Fault> {
        let [asked, field] = arguments else { return Err(Fault::illegal("two arguments are needed")) };
        let asked = self.fields.query(asked)?;
        let opened = self.fields.compared(field)?;
        let stored = match &*opened {
            Opened::Vectors(vectors) => vectors.as_ref().and_then(|vectors| vectors.vector(self.doc)),
            _ => None,
        };
        let stored =
            stored.ok_or_else(|| Fault::illegal("A document doesn't have a value for a vector field!"))?;
        if asked.numbers.len() != stored.len() {
            return Err(Fault::illegal(format!(
                "The query vector has a different number of dimensions [{}] than the document vectors [{}].",
                asked.numbers.len(),
                stored.len()
            )));
        }
        Ok((asked, stored))
    }
}

impl Host for OfDocument<'_> {
    fn has_field(&mut self, field: &Field) -> Result<bool, Fault> {
        Ok(!matches!(*self.fields.opened(field)?, Opened::Unmapped))
    }

    fn count(&mut self, field: &Field) -> Result<usize, Fault> {
        Ok(self.fields.values(field, self.doc)?.len())
    }

    fn value(&mut self, field: &Field, at: usize) -> Result<Value, Fault> {
        Ok(self.fields.values(field, self.doc)?.get(at).cloned().unwrap_or_default())
    }

    fn method(&mut self, field: &Field, name: &str, arguments: &[Value]) -> Result<Option<Value>, Fault> {
        let opened = self.fields.opened(field)?;
        let Opened::Vectors(vectors) = &*opened else { return Ok(None) };
        let vector = || {
            let stored = vectors.as_ref().and_then(|vectors| vectors.vector(self.doc));
            stored.ok_or_else(|| Fault::illegal("A document doesn't have a value for a vector field!"))
        };
        Ok(match (name, arguments) {
            ("vectorValue" | "getVectorValue", []) => {
                Some(Value::list(vector()?.into_iter().map(Value::Float).collect()))
            }
            ("magnitude" | "getMagnitude", []) => Some(Value::Float(squares(&vector()?).sqrt() as f32)),
            _ => None,
        })
    }

    fn call(&mut self, function: usize, arguments: &[Value]) -> Result<Value, Fault> {
        use ScoreFunction as Name;
        let name = Name::ALL[function];
        if let Name::CosineSimilarity | Name::DotProduct | Name::L1Norm | Name::L2Norm = name {
            let (asked, stored) = self.compared(arguments)?;
            return Ok(Value::Double(compare(name, &asked, &stored)));
        }
        let numbers: Option<Vec<f64>> = arguments.iter().map(Value::as_f64).collect();
        let numbers = numbers.ok_or_else(|| Fault::illegal("the arguments must be numbers"))?;
        Ok(Value::Double(match (name, numbers[..].as_ref()) {
            (Name::Saturation, [value, k]) => value / (k + value),
            // As Elasticsearch has it: value^a / (k^a + value^a).
            (Name::Sigmoid, [value, k, a]) => value.powf(*a) / (k.powf(*a) + value.powf(*a)),
            (_, [origin, scale, offset, decay, value]) => {
                let distance = ((value - origin).abs() - offset).max(0.0);
                match name {
                    Name::DecayNumericExp => (decay.ln() / scale * distance).exp(),
                    Name::DecayNumericGauss => (distance * distance * decay.ln() / (scale * scale)).exp(),
                    _ => {
                        let reach = scale / (1.0 - decay);
                        ((reach - distance) / reach).max(0.0)
                    }
                }
            }
            _ => f64::NAN,
        }))
    }
}

/// Compares two vectors of the same length, in double precision.
fn compare(name: ScoreFunction, asked: &AskedVector, stored: &[f32]) -> f64 {
    let pairs = || asked.numbers.iter().zip(stored).map(|(a, b)| (f64::from(*a), f64::from(*b)));
    let dot = || pairs().map(|(a, b)| a * b).sum::<f64>();
    match name {
        ScoreFunction::CosineSimilarity => {
            // Both sums in one pass, each in order.
            let (dot, squares) =
                pairs().fold((0.0, 0.0), |(dot, squares), (a, b)| (dot + a * b, squares + b * b));
            dot / (asked.length * squares.sqrt())
        }
        ScoreFunction::L1Norm => pairs().map(|(a, b)| (a - b).abs()).sum(),
        ScoreFunction::L2Norm => pairs().map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt(),
        _ => dot(),
    }
}

/// The sum of the squares of a vector's components.
fn squares(vector: &[f32]) -> f64 {
    vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum()
}
