package skua;

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/** The cases of the common list that are no statement, and what only JDBC has. */
final class JdbcDoings {
  private JdbcDoings() {}

  private static final String BY_KEY = "SELECT n_name FROM tpch.nation WHERE n_nationkey = ?";
  private static final String ENDLESS = "SELECT a.l_comment FROM tpch.lineitem a, tpch.lineitem b, tpch.lineitem c";

  static void run(String what, String url, Properties p, Connection c) throws Exception {
    switch (what) {
      case "login" -> {
        Properties wrong = new Properties();
        wrong.putAll(p);
        wrong.put("password", "a wrong one");
        try (Connection d = DriverManager.getConnection(url, wrong);
            Statement s = d.createStatement()) {
          s.executeQuery("SELECT 1");
        } catch (SQLException e) {
          return;
        }
        throw new AssertionError("a wrong password is taken");
      }
      case "tables" -> {
        int n = 0;
        try (ResultSet rs = c.getMetaData().getColumns("demo", "tpch", "nation", "%")) {
          while (rs.next()) {
            n++;
          }
        }
        JdbcCases.want(4, n, "columns");
      }
      case "prepare" -> {
        try (PreparedStatement s = c.prepareStatement(BY_KEY)) {
          String[] names = {"ALGERIA", "ARGENTINA", "BRAZIL"};
          for (int i = 0; i < names.length; i++) {
            s.setLong(1, i);
            try (ResultSet rs = s.executeQuery()) {
              JdbcCases.want(true, rs.next(), "a row");
              JdbcCases.want(names[i], rs.getString(1), "name");
            }
          }
        }
      }
      case "session" -> {
        try (Connection d = DriverManager.getConnection(url + "&catalog=demo&schema=tpch", p)) {
          try (Statement s = d.createStatement();
              ResultSet rs = s.executeQuery("SELECT count(*) FROM nation")) {
            rs.next();
            JdbcCases.want(25L, rs.getLong(1), "nations");
          }
        } catch (SQLException e) {
          // The driver shuts its channel before it asks for the session's end, and reports that as an error.
          JdbcCases.want(true, JdbcCases.messages(e).contains("Channel shutdown invoked"), "an error of the driver's own: " + e);
        }
      }
      case "large" -> {
        try (Statement s = c.createStatement()) {
          long want;
          try (ResultSet rs = s.executeQuery("SELECT count(*) FROM tpch.lineitem")) {
            rs.next();
            want = rs.getLong(1);
          }
          long n = 0;
          try (ResultSet rs = s.executeQuery("SELECT * FROM tpch.lineitem")) {
            while (rs.next()) {
              n++;
            }
          }
          JdbcCases.want(want, n, "rows");
        }
      }
      case "leave" -> {
        for (int i = 0; i < 20; i++) {
          try (Statement s = c.createStatement();
              ResultSet rs = s.executeQuery(ENDLESS)) {
            JdbcCases.want(true, rs.next(), "a row");
          }
        }
        try (Statement s = c.createStatement()) {
          s.setMaxRows(100);
          int n = 0;
          try (ResultSet rs = s.executeQuery(ENDLESS)) {
            while (rs.next()) {
              n++;
            }
          }
          JdbcCases.want(100, n, "rows under setMaxRows");
        }
      }
      case "cancel" -> {
        try (Statement s = c.createStatement();
            ResultSet rs = s.executeQuery(ENDLESS)) {
          rs.next();
          Thread other = new Thread(() -> {
            try {
              Thread.sleep(500);
              s.cancel();
            } catch (Exception e) {
              throw new RuntimeException(e);
            }
          });
          other.start();
          long end = System.nanoTime() + 30_000_000_000L;
          try {
            while (rs.next()) {
              if (System.nanoTime() > end) {
                throw new AssertionError("it runs on");
              }
            }
          } catch (SQLException | RuntimeException e) {
            // What a driver says of it is its own; it has ended.
          }
          other.join();
        }
      }
      case "ticket" -> {
        try (Connection d = DriverManager.getConnection(url, p);
            Statement s = d.createStatement();
            ResultSet rs = s.executeQuery("SELECT count(*) FROM demo.tpch.nation")) {
          rs.next();
          JdbcCases.want(25L, rs.getLong(1), "nations");
        }
      }
      case "upload" -> {
        try (Statement s = c.createStatement()) {
          s.executeUpdate("DELETE FROM tpch.nation");
        } catch (SQLException e) {
          JdbcCases.want(true, JdbcCases.messages(e).contains("read-only"), "the reason");
          return;
        }
        throw new AssertionError("there was no error");
      }
      default -> throw new AssertionError("nobody knows how to " + what);
    }
  }

  /** Every table and column of 5,000, as tools read them when they fill their trees. */
  static void manyTables(String url, Properties p) throws SQLException {
    try (Connection c = DriverManager.getConnection(url, p)) {
      DatabaseMetaData m = c.getMetaData();
      int tables = 0;
      try (ResultSet rs = m.getTables(null, null, "%", null)) {
        while (rs.next()) {
          tables++;
        }
      }
      JdbcCases.want(5000, tables, "tables");
      for (int round = 0; round < 2; round++) {
        long begun = System.nanoTime();
        int columns = 0;
        try (ResultSet rs = m.getColumns(null, null, "%", "%")) {
          while (rs.next()) {
            columns++;
          }
        }
        JdbcCases.want(80_000, columns, "columns");
        System.out.printf("columns of 5,000 tables: %d ms%n", (System.nanoTime() - begun) / 1_000_000);
      }
    }
  }

  /** 64 threads share 16 connections and do what applications do, for a while; the heap at the end is what it was after a warm-up. */
  static void pool(String url, Properties p, int seconds) throws Exception {
    int size = 16;
    int threads = 64;
    BlockingQueue<Connection> pool = new ArrayBlockingQueue<>(size);
    for (int i = 0; i < size; i++) {
      pool.add(DriverManager.getConnection(url, p));
    }
    long begun = System.nanoTime();
    long end = begun + seconds * 1_000_000_000L;
    AtomicLong done = new AtomicLong();
    AtomicReference<Throwable> failure = new AtomicReference<>();
    AtomicInteger turn = new AtomicInteger();
    AtomicLong early = new AtomicLong();
    List<Thread> all = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      Thread t = new Thread(() -> {
        while (System.nanoTime() < end && failure.get() == null) {
          Connection c = null;
          try {
            c = pool.take();
            long key = turn.incrementAndGet() % 25;
            switch ((int) (key % 3)) {
              case 0 -> {
                try (PreparedStatement s = c.prepareStatement(BY_KEY)) {
                  s.setLong(1, key);
                  try (ResultSet rs = s.executeQuery()) {
                    JdbcCases.want(true, rs.next(), "a row");
                  }
                }
              }
              case 1 -> {
                try (Statement s = c.createStatement();
                    ResultSet rs = s.executeQuery("SELECT n_regionkey, count(*) FROM tpch.nation GROUP BY 1")) {
                  int n = 0;
                  while (rs.next()) {
                    n++;
                  }
                  JdbcCases.want(5, n, "groups");
                }
              }
              default -> JdbcCases.want(true, c.isValid(5), "validity");
            }
            done.incrementAndGet();
          } catch (Throwable e) {
            failure.compareAndSet(null, e);
          } finally {
            if (c != null) {
              pool.add(c);
            }
          }
        }
      });
      t.start();
      all.add(t);
    }
    Thread.sleep(Math.max(2000, seconds * 1000L / 4));
    early.set(used());
    for (Thread t : all) {
      t.join();
    }
    if (failure.get() != null) {
      throw new AssertionError(failure.get());
    }
    long late = used();
    for (Connection c : pool) {
      try {
        c.close();
      } catch (SQLException e) {
        // Driver 15 accounts for the batches of streams that were closed early as leaked.
        JdbcCases.want(true, JdbcCases.messages(e).contains("Memory was leaked"), "an error of the driver's own: " + JdbcCases.messages(e));
      }
    }
    System.out.printf("pool: %d rounds in %d s, heap %d MB and then %d MB%n", done.get(), seconds, early.get() >> 20, late >> 20);
    if (late > early.get() + (64L << 20)) {
      throw new AssertionError("the heap grew from " + early.get() + " to " + late);
    }
  }

  private static long used() {
    System.gc();
    Runtime r = Runtime.getRuntime();
    return r.totalMemory() - r.freeMemory();
  }
}
