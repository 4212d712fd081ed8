//! What a writer of column-wise segments knows of its values.

use super::shape::Shape;
use crate::layout::Layouts;

/// The layouts that values may be rows of. The default knows none: values are opaque.
#[derive(Clone, Debug, Default)]
pub struct Shapes(pub(super) Vec<Shape>);

impl Shapes {
    /// Those of a table.
    pub fn of(layouts: &Layouts) -> Shapes {
        Shapes(layouts.versions().iter().filter_map(Shape::of).collect())
    }
}
