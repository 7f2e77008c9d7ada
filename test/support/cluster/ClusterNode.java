import static org.codelibs.opensearch.runner.OpenSearchRunner.newConfigs;

import java.util.List;
import org.codelibs.opensearch.runner.OpenSearchRunner;

/**
 * Runs one OpenSearch node of several, each in a process of its own, bound to 127.0.0.1, until it is killed: number
 * {@code -Dnode} of {@code -Dnodes}, whose HTTP ports follow {@code -Dhttp.base} and whose transport ports are 100 higher. All of them
 * take snapshots to the folder {@code -Drepo}.
 */
public class ClusterNode {
  public static void main(String[] args) throws Exception {
    int node = Integer.getInteger("node");
    int nodes = Integer.getInteger("nodes");
    int http = Integer.getInteger("http.base");
    List<String> names = new java.util.ArrayList<>();
    List<String> seeds = new java.util.ArrayList<>();
    for (int i = 0; i < nodes; i++) {
      names.add("node-" + i);
      seeds.add("127.0.0.1:" + (http + 100 + i));
    }
    OpenSearchRunner runner = new OpenSearchRunner();
    runner.onBuild((number, settings) -> {
      settings.put("node.name", names.get(node));
      settings.put("network.host", "127.0.0.1");
      settings.put("http.port", http + node);
      settings.put("transport.port", http + 100 + node);
      settings.putList("path.repo", System.getProperty("repo"));
      settings.putList("discovery.seed_hosts", seeds);
      settings.putList("cluster.initial_cluster_manager_nodes", names);
      settings.putList("node.roles", "cluster_manager", "data", "ingest");
      settings.put("cluster.routing.allocation.disk.threshold_enabled", false);
    });
    runner.build(
        newConfigs()
            .clusterName("sparrow-test-" + http)
            .numOfNode(1)
            .basePath(System.getProperty("base"))
            .pluginTypes(System.getProperty("plugins")));
    Thread.currentThread().join();
  }
}
