package skua;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Calendar;
import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.TimeZone;
import java.util.TreeSet;

/**
 * Runs the common list of cases, and what JDBC tools do beside it, through the Arrow Flight SQL driver.
 * Usage: JdbcCases jdbc-url cases.json user password version results.json [address of a server with many tables, seconds of the pool]
 */
public final class JdbcCases {
  /** One check, which throws when it fails. */
  public interface Check {
    void run() throws Exception;
  }

  private int passed;
  private int failed;

  private final JsonObject results = new JsonObject();

  private void check(String name, Check c) {
    results.addProperty(name, "yes");
    try {
      c.run();
      passed++;
    } catch (Throwable t) {
      results.addProperty(name, "no");
      failed++;
      System.out.println("FAIL " + name + ": " + t);
    }
  }

  static void want(Object expected, Object actual, String what) {
    if (!expected.equals(actual)) {
      throw new AssertionError(what + ": wanted " + expected + ", got " + actual);
    }
  }

  public static void main(String[] args) throws Exception {
    Class.forName("org.apache.arrow.driver.jdbc.ArrowFlightJdbcDriver");
    JsonArray cases = JsonParser.parseString(Files.readString(Path.of(args[1]))).getAsJsonArray();
    Properties p = new Properties();
    if (args.length > 3) {
      p.put("user", args[2]);
      p.put("password", args[3]);
    }
    JdbcCases r = new JdbcCases();
    Connection c = DriverManager.getConnection(args[0], p);
    for (JsonElement e : cases) {
      JsonObject k = e.getAsJsonObject();
      if (k.has("do") && k.get("do").getAsString().equals("bind")) {
        r.results.addProperty(k.get("name").getAsString(), "no call"); // JDBC binds one row at a time
      } else if (k.has("sql")) {
        r.check(k.get("name").getAsString(), () -> runCase(c, k));
      } else {
        r.check(k.get("name").getAsString(), () -> JdbcDoings.run(k.get("do").getAsString(), args[0], p, c));
      }
    }
    JdbcTypes.check(r::check, c);
    r.metadata(c);
    r.dbeaver(c);
    r.statements(c);
    try {
      c.close();
    } catch (SQLException e) {
      // Driver 15 accounts for the batches of streams that were closed early as leaked.
      r.check("close", () -> want(true, messages(e).contains("Memory was leaked by query"), "an error of the driver's own"));
    }
    r.check("catalog in the address", () -> {
      Connection d = DriverManager.getConnection(args[0] + (args[0].contains("?") ? "&" : "?") + "catalog=demo", p);
      try (Statement s = d.createStatement();
          ResultSet rs = s.executeQuery("SELECT count(*) FROM tpch.region")) {
        rs.next();
        want(5L, rs.getLong(1), "regions");
      }
      try {
        d.close();
      } catch (SQLException e) {
        // The driver shuts its channel before it asks for the session's end, and reports that as an error.
        want(true, messages(e).contains("Channel shutdown invoked"), "an error of the driver's own");
      }
    });
    if (args.length > 6) {
      r.check("5,000 tables", () -> JdbcDoings.manyTables(args[6], p));
      r.check("a pool of 64 threads", () -> JdbcDoings.pool(args[0], p, Integer.parseInt(args[7])));
    }
    JsonObject out = new JsonObject();
    out.addProperty("client", "JDBC (flight-sql-jdbc-driver) " + args[4]);
    out.addProperty("version", args[4]);
    out.add("cases", r.results);
    Files.writeString(Path.of(args[5]), out.toString());
    System.out.println(r.passed + " passed, " + r.failed + " failed");
    System.exit(r.failed == 0 ? 0 : 1);
  }

  private static void runCase(Connection c, JsonObject k) throws Exception {
    String sql = k.get("sql").getAsString();
    if (k.has("error")) {
      try (Statement s = c.createStatement();
          ResultSet rs = s.executeQuery(sql)) {
        while (rs.next()) {
          rs.getObject(1);
        }
      } catch (SQLException e) {
        String text = messages(e);
        if (!text.contains(k.get("error").getAsString())) {
          throw new AssertionError("the error does not say " + k.get("error") + ": " + text);
        }
        if (k.has("hint") && !text.contains(k.get("hint").getAsString())) {
          throw new AssertionError("the error does not say " + k.get("hint") + ": " + text);
        }
        return;
      }
      throw new AssertionError("there was no error");
    }
    if (k.has("params")) {
      try (PreparedStatement s = c.prepareStatement(sql)) {
        for (int round = 0; round < 2; round++) { // binding again must work on the same statement
          JsonArray params = k.getAsJsonArray("params");
          want(params.size(), s.getParameterMetaData().getParameterCount(), "parameters");
          for (int i = 0; i < params.size(); i++) {
            JsonObject v = params.get(i).getAsJsonObject();
            if (v.has("long")) {
              s.setLong(i + 1, v.get("long").getAsLong());
            } else {
              s.setString(i + 1, v.get("text").getAsString());
            }
          }
          try (ResultSet rs = s.executeQuery()) {
            compare(k, rs);
          }
        }
      }
      return;
    }
    try (Statement s = c.createStatement();
        ResultSet rs = s.executeQuery(sql)) {
      compare(k, rs);
    }
  }

  static String messages(Throwable t) {
    StringBuilder b = new StringBuilder();
    for (; t != null; t = t.getCause()) {
      b.append(t.getMessage()).append(' ');
    }
    return b.toString();
  }

  private static void compare(JsonObject k, ResultSet rs) throws SQLException {
    JsonArray columns = k.getAsJsonArray("columns");
    JsonArray rows = k.getAsJsonArray("rows");
    if (rows.size() > 0) { // the driver doubles the columns of an empty result by itself
      want(columns.size(), rs.getMetaData().getColumnCount(), "columns");
    }
    for (int i = 0; i < columns.size(); i++) {
      want(columns.get(i).getAsString(), rs.getMetaData().getColumnLabel(i + 1), "label of column " + (i + 1));
    }
    int n = 0;
    while (rs.next()) {
      if (n >= rows.size()) {
        throw new AssertionError("more rows than the " + rows.size() + " wanted");
      }
      JsonArray row = rows.get(n++).getAsJsonArray();
      for (int i = 0; i < columns.size(); i++) {
        String got = text(rs, i + 1);
        String expected = row.get(i).isJsonNull() ? null : row.get(i).getAsString();
        if (expected == null ? got != null : !expected.equals(got)) {
          throw new AssertionError("row " + n + " column " + (i + 1) + ": wanted " + expected + ", got " + got);
        }
      }
    }
    want(rows.size(), n, "rows");
  }

  private static final DateTimeFormatter MICROS = DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSSSSS");

  private static String text(ResultSet rs, int i) throws SQLException {
    Object o = rs.getObject(i);
    if (o == null) {
      return null;
    }
    if (o instanceof BigDecimal d) {
      return d.toPlainString();
    }
    if (o instanceof java.sql.Date) {
      Calendar utc = Calendar.getInstance(TimeZone.getTimeZone("UTC"));
      return LocalDateTime.ofInstant(java.time.Instant.ofEpochMilli(rs.getDate(i, utc).getTime()), ZoneOffset.UTC)
          .toLocalDate().toString();
    }
    if (o instanceof Timestamp t) {
      return t.toLocalDateTime().format(MICROS);
    }
    return String.valueOf(o);
  }

  private static Set<String> column(ResultSet rs, String name) throws SQLException {
    Set<String> out = new TreeSet<>();
    try (rs) {
      while (rs.next()) {
        out.add(rs.getString(name));
      }
    }
    return out;
  }

  private void metadata(Connection c) throws SQLException {
    DatabaseMetaData m = c.getMetaData();
    check("getCatalogs", () -> want(Set.of("demo"), column(m.getCatalogs(), "TABLE_CAT"), "catalogs"));
    check("getSchemas", () -> want(new TreeSet<>(List.of("samples", "tpch")), column(m.getSchemas(), "TABLE_SCHEM"), "schemas"));
    check("getTables", () -> want(
        new TreeSet<>(List.of("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")),
        column(m.getTables("demo", "tpch", "%", null), "TABLE_NAME"), "tables"));
    check("getTables by pattern", () -> want(new TreeSet<>(List.of("part", "partsupp")),
        column(m.getTables(null, "tp%", "part%", new String[] {"TABLE"}), "TABLE_NAME"), "tables"));
    check("getTableTypes", () -> want(Set.of("TABLE"), column(m.getTableTypes(), "TABLE_TYPE"), "types"));
    check("getColumns", () -> {
      List<String> names = new ArrayList<>();
      try (ResultSet rs = m.getColumns("demo", "tpch", "nation", "%")) {
        while (rs.next()) {
          names.add(rs.getString("COLUMN_NAME") + " " + rs.getString("TYPE_NAME") + " " + rs.getInt("NULLABLE"));
        }
      }
      want(List.of("n_nationkey bigint 0", "n_name varchar 0", "n_regionkey bigint 0", "n_comment varchar 1"), names, "columns");
    });
    check("getColumns of decimals", () -> {
      try (ResultSet rs = m.getColumns("demo", "tpch", "orders", "o_totalprice")) {
        rs.next();
        want(15, rs.getInt("COLUMN_SIZE"), "precision");
        want(2, rs.getInt("DECIMAL_DIGITS"), "scale");
      }
    });
    check("getColumns of every table", () -> {
      int n = 0;
      try (ResultSet rs = m.getColumns(null, null, null, null)) {
        while (rs.next()) {
          n++;
        }
      }
      if (n < 60) {
        throw new AssertionError("only " + n + " columns");
      }
    });
    check("keys are empty", () -> {
      want(Set.of(), column(m.getPrimaryKeys("demo", "tpch", "nation"), "COLUMN_NAME"), "primary keys");
      want(Set.of(), column(m.getImportedKeys("demo", "tpch", "nation"), "FKTABLE_NAME"), "imported keys");
      want(Set.of(), column(m.getExportedKeys("demo", "tpch", "nation"), "FKTABLE_NAME"), "exported keys");
      want(Set.of(), column(m.getCrossReference("demo", "tpch", "nation", "demo", "tpch", "region"), "FKTABLE_NAME"), "cross reference");
    });
    check("product", () -> want("Skua", m.getDatabaseProductName(), "product name"));
    // Every question without arguments: the driver casts each answer to the type that the protocol says, or throws.
    Set<String> notTheDrivers = new HashSet<>(Arrays.asList("getRowIdLifetime", "supportsRefCursors", "supportsSharding"));
    for (Method q : DatabaseMetaData.class.getMethods()) {
      if (q.getParameterCount() > 0 || notTheDrivers.contains(q.getName())) {
        continue;
      }
      check("metadata " + q.getName(), () -> {
        try {
          Object answer = q.invoke(m);
          if (answer instanceof ResultSet rs) {
            rs.close();
          }
        } catch (InvocationTargetException e) {
          if (!(e.getCause() instanceof SQLFeatureNotSupportedException)) {
            throw new AssertionError(e.getCause());
          }
        }
      });
    }
  }

  /** The sequence in which DBeaver opens a connection, browses a table and fills its grid. */
  private void dbeaver(Connection c) {
    check("DBeaver's sequence", () -> {
      DatabaseMetaData m = c.getMetaData();
      m.getDatabaseProductName();
      m.getDatabaseProductVersion();
      m.getIdentifierQuoteString();
      m.getSQLKeywords();
      m.getSearchStringEscape();
      for (String cat : column(m.getCatalogs(), "TABLE_CAT")) {
        for (String schema : column(m.getSchemas(cat, null), "TABLE_SCHEM")) {
          for (String table : column(m.getTables(cat, schema, "%", null), "TABLE_NAME")) {
            column(m.getColumns(cat, schema, table, "%"), "COLUMN_NAME");
            m.getPrimaryKeys(cat, schema, table).close();
            m.getIndexInfo(cat, schema, table, false, true).close();
          }
        }
      }
      try (Statement s = c.createStatement()) {
        s.setMaxRows(200);
        s.setFetchSize(200);
        try (ResultSet rs = s.executeQuery("SELECT * FROM demo.tpch.lineitem")) {
          int n = 0;
          while (rs.next() && n < 200) {
            rs.getObject(1);
            n++;
          }
          want(200, n, "rows of the grid");
        }
      }
    });
  }

  private void statements(Connection c) {
    check("many statements at once", () -> {
      List<ResultSet> open = new ArrayList<>();
      for (int i = 0; i < 20; i++) {
        open.add(c.createStatement().executeQuery("SELECT * FROM tpch.orders"));
      }
      for (ResultSet rs : open) {
        rs.next();
        rs.getStatement().close();
      }
    });
    check("null parameter", () -> {
      try (PreparedStatement s = c.prepareStatement("SELECT n_name FROM tpch.nation WHERE n_nationkey = ?")) {
        s.setNull(1, java.sql.Types.BIGINT);
        try (ResultSet rs = s.executeQuery()) {
          want(false, rs.next(), "a row");
        }
      }
    });
    check("date, decimal and timestamp parameters", () -> {
      try (PreparedStatement s = c.prepareStatement(
          "SELECT count(*) FROM tpch.orders WHERE o_orderdate < ? AND o_totalprice > ? AND CAST(o_orderdate AS timestamp) < ?")) {
        s.setDate(1, java.sql.Date.valueOf("1995-01-01"));
        s.setBigDecimal(2, new BigDecimal("1000.00"));
        s.setTimestamp(3, Timestamp.valueOf("2000-01-01 00:00:00"));
        try (ResultSet rs = s.executeQuery()) {
          rs.next();
          if (rs.getLong(1) <= 0) {
            throw new AssertionError("no orders");
          }
        }
      }
    });
    check("an update is refused", () -> {
      try (Statement s = c.createStatement()) {
        s.executeUpdate("DELETE FROM tpch.nation");
      } catch (SQLException e) {
        if (!messages(e).contains("read-only")) {
          throw new AssertionError(messages(e));
        }
        return;
      }
      throw new AssertionError("there was no error");
    });
    check("isValid", () -> want(true, c.isValid(5), "connection is valid"));
  }
}
