package skua;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Files;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.ExpressionParser;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;

/**
 * Plans with Iceberg's reference implementation. Each line of standard input is an object of a metadata file's path and a filter in Iceberg's
 * JSON of expressions; each line of output lists the planned data files, each with the delete files that apply to it, or has an error.
 */
public final class PlanOracle {
  private PlanOracle() {}

  /** Reads files of this machine and writes none. */
  private static final class LocalFiles implements FileIO {
    @Override
    public InputFile newInputFile(String path) {
      return Files.localInput(new File(path.startsWith("file:") ? path.replaceFirst("^file:/*", "/") : path));
    }

    @Override
    public OutputFile newOutputFile(String path) {
      throw new UnsupportedOperationException(path);
    }

    @Override
    public void deleteFile(String path) {
      throw new UnsupportedOperationException(path);
    }
  }

  public static void main(String[] args) throws Exception {
    ObjectMapper json = new ObjectMapper();
    Map<String, Table> tables = new HashMap<>();
    FileIO io = new LocalFiles();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      ObjectNode answer = json.createObjectNode();
      try {
        JsonNode ask = json.readTree(line);
        Table table = tables.computeIfAbsent(ask.get("metadata").asText(), path -> new BaseTable(new StaticTableOperations(path, io), path));
        Expression filter = ExpressionParser.fromJson(ask.get("filter").toString(), table.schema());
        ObjectNode files = answer.putObject("files");
        try (CloseableIterable<FileScanTask> tasks = table.newScan().filter(filter).planFiles()) {
          for (FileScanTask task : tasks) {
            ArrayNode deletes = files.putArray(task.file().location());
            for (DeleteFile d : task.deletes()) {
              deletes.add(d.location());
            }
          }
        }
      } catch (Exception e) {
        answer.removeAll();
        answer.put("error", e.toString());
      }
      out.println(json.writeValueAsString(answer));
      out.flush();
    }
  }
}
