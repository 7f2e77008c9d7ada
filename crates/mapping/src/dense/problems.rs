//! Why a vector does not fit a field.

use sparrow_vectors::{Element, Similarity};

use super::super::java::java_float;
use super::{DenseVector, element_name, similarity_name};

/// Why a component of a dense vector is refused.
pub fn component_problem(element: Element, component: f32, at: usize) -> Option<String> {
    let name = element_name(element);
    if !component.is_finite() {
        return Some(format!(
            "element_type [{name}] vectors do not support NaN or infinite values but found [{}] at dim [{at}];",
            java_float(component)
        ));
    }
    if element.holds(component) {
        return None;
    }
    // Bits come as bytes, and Elasticsearch calls both so.
    Some(if component.fract() == 0.0 {
        format!(
            "element_type [{name}] vectors only support integers between [-128, 127] but found [{component}] at dim \
             [{at}];"
        )
    } else {
        format!(
            "element_type [{name}] vectors only support non-decimal values but found decimal value [{}] at dim \
             [{at}];",
            java_float(component)
        )
    })
}

/// What makes a vector's length unfit for a field's similarity.
pub fn magnitude_problem(field: &DenseVector, vector: &[f32]) -> Option<String> {
    let squared: f32 = vector.iter().map(|component| component * component).sum();
    let float = field.element == Element::Float;
    let problem = match field.similarity {
        Similarity::Cosine | Similarity::DotProduct if !squared.is_finite() => {
            return Some(format!(
                "NaN or Infinite magnitude detected, this usually means the vector values are too extreme to fit \
                 within a float. {}",
                preview(field.element, vector)
            ));
        }
        Similarity::Cosine if squared == 0.0 => "does not support vectors with zero magnitude",
        Similarity::DotProduct if float && (squared - 1.0).abs() > UNIT_TOLERANCE => {
            "can only be used with unit-length vectors"
        }
        _ => return None,
    };
    let name = similarity_name(field.similarity);
    Some(format!("The [{name}] similarity {problem}. {}", preview(field.element, vector)))
}

/// How far the squared length of a "unit" vector may be from 1.
const UNIT_TOLERANCE: f32 = 1e-3;

/// The first components, for errors.
pub fn preview(element: Element, vector: &[f32]) -> String {
    let shown: Vec<String> = vector
        .iter()
        .take(5)
        .map(|component| {
            if element == Element::Float || component.fract() != 0.0 {
                java_float(*component)
            } else {
                (*component as i64).to_string()
            }
        })
        .collect();
    let more = if vector.len() > 5 { ", ..." } else { "" };
    format!("Preview of invalid vector: [{}{more}]", shown.join(", "))
}
