import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.IndexWriterConfig.OpenMode;
import org.apache.lucene.index.StoredFields;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopScoreDocCollectorManager;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.MMapDirectory;
import org.apache.lucene.util.Version;

/**
 * LuceneWords TEXTS QUESTIONS INDEX OUT PASSES: BM25 in Lucene, one segment, one thread, any word of a question, ten hits and no total. A
 * text or question is a line of words with spaces between them. Prints one JSON object; OUT gets the numbers of the texts that were found.
 */
public class LuceneWords {
  static final int K = 10, WARM_UP = 3;

  public static void main(String[] args) throws Exception {
    Directory directory = new MMapDirectory(Path.of(args[2]));
    long begun = System.nanoTime();
    IndexWriterConfig config = new IndexWriterConfig(new StandardAnalyzer()).setRAMBufferSizeMB(256).setOpenMode(OpenMode.CREATE);
    try (IndexWriter writer = new IndexWriter(directory, config); var lines = Files.newBufferedReader(Path.of(args[0]))) {
      int number = 0;
      for (String line; (line = lines.readLine()) != null; number++) {
        Document document = new Document();
        document.add(new StoredField("id", number));
        document.add(new TextField("text", line, Field.Store.NO));
        writer.addDocument(document);
      }
      writer.forceMerge(1);
    }
    double built = (System.nanoTime() - begun) / 1e9;
    IndexSearcher searcher = new IndexSearcher(DirectoryReader.open(directory));
    searcher.setQueryCache(null);
    List<String> questions = Files.readAllLines(Path.of(args[1]));
    ByteBuffer found = ByteBuffer.allocate(4 * K * questions.size()).order(ByteOrder.LITTLE_ENDIAN);
    double[] best = new double[questions.size()];
    Arrays.fill(best, Double.MAX_VALUE);
    for (int round = 0; round < WARM_UP + Integer.parseInt(args[4]); round++) {
      found.clear();
      for (int at = 0; at < best.length; at++) {
        long asked = System.nanoTime();
        BooleanQuery.Builder any = new BooleanQuery.Builder();
        for (String word : questions.get(at).split(" ")) any.add(new TermQuery(new Term("text", word)), Occur.SHOULD);
        ScoreDoc[] hits = searcher.search(any.build(), new TopScoreDocCollectorManager(K, K)).scoreDocs;
        StoredFields stored = searcher.storedFields();
        int[] ids = new int[hits.length];
        for (int rank = 0; rank < hits.length; rank++) ids[rank] = stored.document(hits[rank].doc).getField("id").numericValue().intValue();
        double took = (System.nanoTime() - asked) / 1e6;
        if (round >= WARM_UP) best[at] = Math.min(best[at], took);
        for (int rank = 0; rank < K; rank++) found.putInt(rank < ids.length ? ids[rank] : -1);
      }
    }
    Files.write(Path.of(args[3]), found.array());
    Arrays.sort(best);
    System.out.printf(Locale.ROOT, "{\"version\":\"%s\",\"build_s\":%.3f,\"mean\":%.4f,\"p50\":%.4f,\"p95\":%.4f}%n",
        Version.LATEST, built, Arrays.stream(best).average().orElse(0), best[best.length / 2], best[best.length * 95 / 100]);
  }
}
