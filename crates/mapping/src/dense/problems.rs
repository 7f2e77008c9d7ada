//! Error messages for vectors that do not fit a `dense_vector` field.

use sparrow_vectors::{Element, Similarity};

use super::super::java::java_float;
use super::{DenseVector, element_name, similarity_name};

/// Error message for a component that the element type cannot hold, at dimension `at`; `None` if it fits.
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

/// Error message for a vector whose magnitude does not fit a float or does not suit the field's similarity; `None` if
/// it does.
pub fn magnitude_problem(field: &DenseVector, vector: &[f32]) -> Option<String> {
    let squared: f32 = vector.iter().map(|component| component * component).sum();
    let float = field.element == Element::Float;
    let problem = match field.similarity {
        _ if !squared.is_finite() => {
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

/// Largest allowed deviation of a unit vector's squared length from 1.
const UNIT_TOLERANCE: f32 = 1e-3;

/// The first five components as text, for error messages.
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
