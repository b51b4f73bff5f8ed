package skua;

import java.math.BigDecimal;
import java.sql.Array;
import java.sql.Connection;
import java.sql.Date;
import java.sql.ParameterMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Time;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.Arrays;
import java.util.Map;
import java.util.function.BiConsumer;

/** Every type by getObject, by metadata and by parameter. */
final class JdbcTypes {
  private JdbcTypes() {}

  private interface Value {
    boolean right(Object o) throws Exception;
  }

  private record Typed(String sql, int jdbc, Value value) {}

  private static Typed is(String sql, int jdbc, Value v) {
    return new Typed(sql, jdbc, v);
  }

  private static final Typed[] TYPES = {
    is("true", Types.BOOLEAN, o -> o.equals(true)),
    is("CAST(7 AS integer)", Types.INTEGER, o -> o.equals(7)),
    is("CAST(8 AS bigint)", Types.BIGINT, o -> o.equals(8L)),
    is("CAST(1.5 AS real)", Types.REAL, o -> ((Number) o).doubleValue() == 1.5),
    is("CAST(2.5 AS double)", Types.DOUBLE, o -> o.equals(2.5)),
    is("CAST('1.20' AS decimal(9,2))", Types.DECIMAL, o -> o.equals(new BigDecimal("1.20"))),
    is("CAST('12345678901234567890123456789012345678' AS decimal(38,0))", Types.DECIMAL,
        o -> o.equals(new BigDecimal("12345678901234567890123456789012345678"))),
    is("'x'", Types.VARCHAR, o -> o.toString().equals("x")),
    is("X'00ff'", Types.VARBINARY, o -> Arrays.equals((byte[]) o, new byte[] {0, -1})),
    is("UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59'", Types.BINARY, o -> text(o).replace("-", "").contains("12151fd2758611e98f9e2a86e4085a59")),
    is("DATE '2026-01-02'", Types.DATE, o -> o instanceof Date),
    is("TIME '03:04:05'", Types.TIME, o -> o instanceof Time),
    is("TIMESTAMP '2026-01-02 03:04:05.678901'", Types.TIMESTAMP, o -> ((Timestamp) o).getNanos() == 678901000),
    is("TIMESTAMP '2026-01-02 03:04:05.678901 UTC'", Types.TIMESTAMP_WITH_TIMEZONE, o -> text(o).contains("03:04:05.678901")),
    is("ARRAY[1, 2]", Types.ARRAY, o -> ((Array) o).getArray() != null),
    is("CAST(ROW(1, 'a') AS row(x integer, y varchar))", Types.STRUCT, o -> ((Map<?, ?>) o).get("x").equals(1)),
    is("MAP(ARRAY['k'], ARRAY[1])", Types.JAVA_OBJECT, o -> o instanceof Map),
  };

  private static Object object(ResultSet rs, Typed t) throws Exception {
    try {
      return rs.getObject(1);
    } catch (RuntimeException e) {
      // The driver's getObject knows no TIMESTAMP_WITH_TIMEZONE; its getTimestamp does.
      if (t.jdbc == Types.TIMESTAMP_WITH_TIMEZONE && "not implemented".equals(e.getMessage())) {
        return rs.getTimestamp(1);
      }
      throw e;
    }
  }

  private static String text(Object o) {
    if (o instanceof byte[] b) {
      StringBuilder s = new StringBuilder();
      for (byte x : b) {
        s.append(String.format("%02x", x));
      }
      return s.toString();
    }
    return o.toString();
  }

  static void check(BiConsumer<String, JdbcCases.Check> checks, Connection c) {
    for (Typed t : TYPES) {
      checks.accept("type " + t.sql, () -> {
        try (PreparedStatement s = c.prepareStatement("SELECT " + t.sql + " AS v");
            ResultSet rs = s.executeQuery()) {
          int told = rs.getMetaData().getColumnType(1);
          boolean nested = t.jdbc == Types.STRUCT || t.jdbc == Types.JAVA_OBJECT;
          boolean zoned = t.jdbc == Types.TIMESTAMP_WITH_TIMEZONE && told == Types.TIMESTAMP; // driver 15
          boolean floats = t.jdbc == Types.REAL && told == Types.FLOAT;
          boolean bytes = t.jdbc == Types.BINARY && (told == Types.OTHER || told == Types.VARBINARY);
          if (told != t.jdbc && !(nested && (told == Types.JAVA_OBJECT || told == Types.STRUCT)) && !zoned && !floats && !bytes) {
            throw new AssertionError("type " + told + ", wanted " + t.jdbc);
          }
          JdbcCases.want(true, rs.next(), "a row");
          Object o = object(rs, t);
          if (o == null || !t.value.right(o)) {
            throw new AssertionError("value " + o + " of " + (o == null ? null : o.getClass()));
          }
          JdbcCases.want(false, rs.wasNull(), "null");
        }
      });
    }
    bound(checks, c, "boolean", s -> s.setBoolean(1, true), "true");
    bound(checks, c, "integer", s -> s.setInt(1, 7), "7");
    bound(checks, c, "bigint", s -> s.setLong(1, 8), "8");
    bound(checks, c, "double", s -> s.setDouble(1, 2.5), "2.5");
    bound(checks, c, "real", s -> s.setFloat(1, 1.5f), "1.5");
    bound(checks, c, "decimal(9,2)", s -> s.setBigDecimal(1, new BigDecimal("1.20")), "1.20");
    bound(checks, c, "varchar", s -> s.setString(1, "x"), "x");
    bound(checks, c, "varbinary", s -> s.setBytes(1, new byte[] {0, -1}), "00FF");
    bound(checks, c, "uuid", s -> s.setString(1, "12151fd2-7586-11e9-8f9e-2a86e4085a59"), "12151fd2-7586-11e9-8f9e-2a86e4085a59");
    bound(checks, c, "date", s -> s.setDate(1, Date.valueOf("2026-01-02")), "2026-01-02");
    bound(checks, c, "time", s -> s.setTime(1, Time.valueOf("03:04:05")), "03:04:05");
    bound(checks, c, "timestamp", s -> s.setTimestamp(1, Timestamp.valueOf("2026-01-02 03:04:05.678")), "2026-01-02 03:04:05.678");
  }

  private interface Setter {
    void set(PreparedStatement s) throws Exception;
  }

  /** A parameter of a type comes back as text; binary in hexadecimal. */
  private static void bound(BiConsumer<String, JdbcCases.Check> checks, Connection c, String type, Setter set, String want) {
    checks.accept("parameter " + type, () -> {
      String v = "CAST(? AS " + type + ")";
      String sql = "SELECT " + (type.equals("varbinary") ? "to_hex(" + v + ")" : "CAST(" + v + " AS varchar)") + " AS v";
      try (PreparedStatement s = c.prepareStatement(sql)) {
        ParameterMetaData m = s.getParameterMetaData();
        JdbcCases.want(1, m.getParameterCount(), "parameters");
        set.set(s);
        try (ResultSet rs = s.executeQuery()) {
          JdbcCases.want(true, rs.next(), "a row");
          String got = rs.getString(1);
          if (!got.startsWith(want)) {
            throw new AssertionError("wanted " + want + ", got " + got);
          }
        }
      }
    });
  }
}
