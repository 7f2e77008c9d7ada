//! Writes the files of tantivy's inverted index again, with the terms of texts.

use std::io::{self, Write};

use tantivy::DocId;
use tantivy::directory::{CompositeFile, CompositeWrite, FileSlice};
use tantivy::fieldnorm::{FieldNormReader, FieldNormsSerializer};
use tantivy::index::{Segment, SegmentComponent};
use tantivy::postings::FieldSerializer;
use tantivy::schema::{Field, IndexRecordOption, Schema};

use super::buffer::{BufferedTerm, TermBuffer};
use super::read_vint;

impl TermBuffer {
    /// Adds the terms to the files that tantivy has written for the segment, of `max_doc` documents; other fields stay as they are in them.
    pub fn write(self, segment: &Segment, max_doc: DocId) -> tantivy::Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let schema = segment.schema();
        self.write_norms(segment, &schema, max_doc)?;
        let mut terms = Rewrite::begin(segment, &schema, SegmentComponent::Terms)?;
        let mut postings = Rewrite::begin(segment, &schema, SegmentComponent::Postings)?;
        let mut positions = Rewrite::begin(segment, &schema, SegmentComponent::Positions)?;
        let sorted = self.sorted();
        for (field, entry) in schema.fields() {
            let Some(numbers) = sorted.get(&field.field_id()) else {
                for file in [&mut terms, &mut postings, &mut positions] {
                    file.copy(field)?;
                }
                continue;
            };
            let records = entry.field_type().index_record_option().unwrap_or(IndexRecordOption::Basic);
            let lengths = self.lengths(field.field_id());
            let norms = lengths.filter(|_| entry.has_fieldnorms()).map(|lengths| lengths.norms(max_doc));
            let mut serializer = FieldSerializer::create(
                records,
                lengths.map_or(0, |lengths| lengths.tokens),
                terms.out.for_field(field),
                postings.out.for_field(field),
                positions.out.for_field(field),
                norms.map(|norms| FieldNormReader::open(FileSlice::from(norms))).transpose()?,
            )?;
            let mut buffers = Buffers::default();
            for &number in numbers {
                write_term(&self.term(number), records, &mut serializer, &mut buffers)?;
            }
            serializer.close()?;
        }
        for file in [terms, postings, positions] {
            file.out.close()?;
        }
        Ok(())
    }

    fn write_norms(&self, segment: &Segment, schema: &Schema, max_doc: DocId) -> tantivy::Result<()> {
        let fields = || schema.fields().filter(|(_, entry)| entry.is_indexed() && entry.has_fieldnorms());
        let old = contents(segment, &SegmentComponent::FieldNorms, fields().map(|(field, _)| field))?;
        let mut out = FieldNormsSerializer::from_write(segment.open_write(SegmentComponent::FieldNorms)?)?;
        for ((field, _), old) in fields().zip(old) {
            match self.lengths(field.field_id()) {
                Some(lengths) => out.serialize_field(field, &lengths.norms(max_doc))?,
                None => out.serialize_field(field, &old.unwrap_or_default())?,
            }
        }
        out.close()?;
        Ok(())
    }
}

/// A file that is written again: what it has of each field, and the new file.
struct Rewrite {
    old: Vec<Option<Vec<u8>>>,
    out: CompositeWrite,
}

impl Rewrite {
    fn begin(segment: &Segment, schema: &Schema, component: SegmentComponent) -> tantivy::Result<Self> {
        let old = contents(segment, &component, schema.fields().map(|(field, _)| field))?;
        Ok(Self { old, out: CompositeWrite::wrap(segment.open_write(component)?) })
    }

    /// Copies what the old file has of a field.
    fn copy(&mut self, field: Field) -> io::Result<()> {
        match self.old[field.field_id() as usize].take() {
            Some(bytes) => self.out.for_field(field).write_all(&bytes),
            None => Ok(()),
        }
    }
}

/// What a file has of each of the fields. In memory, as a file that is mapped cannot be replaced on every platform.
fn contents(
    segment: &Segment,
    component: &SegmentComponent,
    fields: impl Iterator<Item = Field>,
) -> tantivy::Result<Vec<Option<Vec<u8>>>> {
    let file = CompositeFile::open(&segment.open_read(component.clone())?)?;
    fields
        .map(|field| match file.open_read(field) {
            Some(part) => Ok(Some(part.read_bytes()?.to_vec())),
            None => Ok(None),
        })
        .collect()
}

#[derive(Default)]
struct Buffers {
    postings: Vec<u8>,
    positions: Vec<u32>,
}

/// Writes one term with its postings, as tantivy's recorders do.
fn write_term(
    term: &BufferedTerm<'_>,
    records: IndexRecordOption,
    out: &mut FieldSerializer<'_>,
    buffers: &mut Buffers,
) -> io::Result<()> {
    term.read_postings(&mut buffers.postings);
    let counted = if records.has_freq() { term.num_docs } else { 0 };
    out.new_term(term.key, counted, records.has_freq())?;
    let mut rest = &buffers.postings[..];
    let mut doc = 0;
    while !rest.is_empty() {
        let head = read_vint(&mut rest);
        doc += head >> 1;
        let tokens = match (records.has_freq(), head & 1 == 1) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => read_vint(&mut rest),
        };
        buffers.positions.clear();
        if records.has_positions() {
            buffers.positions.extend((0..tokens).map(|_| read_vint(&mut rest)));
        }
        out.write_doc(doc, tokens, &buffers.positions);
    }
    out.close_term()
}
