//! Tests of scripts, as their callers use them.

mod oracle;
