#!/bin/sh
# What cargo runs in place of rustc for the Rust tests (RUSTC_WRAPPER in scripts/test.mjs). Test programs are optimised little, which
# saves half of the time that their compilation takes: only the unit tests of crates that compute much, and those somewhat. The crates
# that they call stay as they are in the addon, so that each is compiled once for both.
level=0
for argument; do
  case "$argument" in
    sparrow_encoder | sparrow_tantivy_index | sparrow_postings | sparrow_vectors) level=1 ;;
    --test) exec "$@" -C opt-level=$level -C debuginfo=0 ;;
  esac
done
exec "$@"
