//! Every kernel of every implementation that this machine can run, over 100,000 documents.
//!
//! `cargo bench -p sparrow-postings --bench kernels`; `-- --test` runs each once.

use criterion::Criterion;

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(20);
    for (kernel, implementation, mut run) in sparrow_postings::kernel_cases() {
        let mut group = criterion.benchmark_group(kernel);
        group.bench_function(implementation, |bencher| bencher.iter(&mut run));
        group.finish();
    }
    criterion.final_summary();
}
