import java.math.BigDecimal;
import java.sql.*;
import java.time.LocalDateTime;
import java.util.*;
import java.util.concurrent.*;

/** What a program does with tables of one engine by JDBC: {@code java Client URL ENGINE}. Prints a line for each check. */
public class Client {
    static String engine;
    static int failed = 0;

    interface Body { void run() throws Exception; }

    static void check(String what, Body body) {
        try {
            body.run();
            System.out.println("ok      " + engine + ": " + what);
        } catch (Exception | AssertionError e) {
            failed++;
            System.out.println("FAILED  " + engine + ": " + what + ": " + e);
        }
    }

    static void same(Object found, Object wanted) {
        if (!Objects.equals(found, wanted)) throw new AssertionError(found + " is not " + wanted);
    }

    static String one(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            r.next();
            return r.getString(1);
        }
    }

    static void sql(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement()) { s.execute(sql); }
    }

    static int code(Body body) throws Exception {
        try {
            body.run();
            return 0;
        } catch (SQLException e) {
            return e.getErrorCode();
        }
    }

    public static void main(String[] arguments) throws Exception {
        String url = arguments[0];
        engine = arguments[1];
        try (Connection c = DriverManager.getConnection(url);
             Connection onServer = DriverManager.getConnection(url + "&useServerPrepStmts=true")) {
            sql(c, "CREATE TABLE jdbc (id BIGINT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50) UNIQUE, amount DECIMAL(30,10),"
                + " at DATETIME(6), data LONGBLOB, flag BOOLEAN, u UUID) ENGINE=" + engine);
            values(c, "text protocol");
            values(onServer, "prepared on the server");
            batches(c, DriverManager.getConnection(url + "&useBulkStmts=true"), "bulk protocol");
            batches(c, DriverManager.getConnection(url + "&useBulkStmts=false"), "many statements");
            transactions(c);
            deadlock(c, onServer);
            reading(c);
            metadata(c);
        }
        System.exit(failed == 0 ? 0 : 1);
    }

    static void values(Connection c, String how) {
        check("values of many types, " + how, () -> {
            byte[] bytes = new byte[300000];
            new Random(7).nextBytes(bytes);
            LocalDateTime at = LocalDateTime.of(2026, 2, 3, 4, 5, 6, 789012000);
            UUID uuid = UUID.fromString("123e4567-e89b-12d3-a456-426655440000");
            long id;
            try (PreparedStatement p = c.prepareStatement("INSERT INTO jdbc (name, amount, at, data, flag, u) VALUES (?, ?, ?, ?, ?, ?)",
                    Statement.RETURN_GENERATED_KEYS)) {
                p.setString(1, how + " \uD83C\uDF33");
                p.setBigDecimal(2, new BigDecimal("12345678901234567890.0123456789"));
                p.setObject(3, at);
                p.setBytes(4, bytes);
                p.setBoolean(5, true);
                p.setString(6, uuid.toString());
                same(p.executeUpdate(), 1);
                ResultSet keys = p.getGeneratedKeys();
                keys.next();
                id = keys.getLong(1);
            }
            try (PreparedStatement p = c.prepareStatement("SELECT * FROM jdbc WHERE id = ?")) {
                p.setLong(1, id);
                ResultSet r = p.executeQuery();
                same(r.next(), true);
                same(r.getString("name"), how + " \uD83C\uDF33");
                same(r.getBigDecimal("amount"), new BigDecimal("12345678901234567890.0123456789"));
                same(r.getObject("at", LocalDateTime.class), at);
                same(Arrays.equals(r.getBytes("data"), bytes), true);
                same(r.getBoolean("flag"), true);
                same(r.getObject("u").toString(), uuid.toString());
                same(r.next(), false);
            }
        });
    }

    static void batches(Connection c, Connection by, String how) {
        check("a batch of 5,000 rows, " + how, () -> {
            sql(c, "CREATE OR REPLACE TABLE batch (id INT PRIMARY KEY, name VARCHAR(20)) ENGINE=" + engine);
            by.setAutoCommit(false);
            try (PreparedStatement p = by.prepareStatement("INSERT INTO batch VALUES (?, ?)")) {
                for (int i = 0; i < 5000; i++) {
                    p.setInt(1, i);
                    p.setString(2, "name " + i);
                    p.addBatch();
                }
                same(p.executeBatch().length, 5000);
            }
            same(one(c, "SELECT COUNT(*) FROM batch"), "0");
            by.commit();
            same(one(c, "SELECT COUNT(DISTINCT name) FROM batch"), "5000");
            by.close();
        });
    }

    static void transactions(Connection c) {
        check("rollback, commit, savepoints, isolation levels", () -> {
            for (int level : new int[] {Connection.TRANSACTION_READ_COMMITTED, Connection.TRANSACTION_REPEATABLE_READ, Connection.TRANSACTION_SERIALIZABLE}) {
                sql(c, "DELETE FROM batch");
                c.setTransactionIsolation(level);
                c.setAutoCommit(false);
                sql(c, "INSERT INTO batch VALUES (1, 'kept')");
                Savepoint here = c.setSavepoint();
                sql(c, "INSERT INTO batch VALUES (2, 'gone')");
                c.rollback(here);
                c.commit();
                sql(c, "INSERT INTO batch VALUES (3, 'gone')");
                c.rollback();
                c.setAutoCommit(true);
                same(one(c, "SELECT GROUP_CONCAT(name) FROM batch"), "kept");
            }
            c.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        });
        check("the number of the error of a duplicate key, and its class", () -> {
            same(code(() -> sql(c, "INSERT INTO batch VALUES (1, 'again')")), 1062);
            try {
                sql(c, "INSERT INTO batch VALUES (1, 'again')");
            } catch (SQLIntegrityConstraintViolationException e) {
                return;
            }
            throw new AssertionError("no SQLIntegrityConstraintViolationException");
        });
    }

    static int half(Connection c, int id) throws Exception {
        return code(() -> sql(c, "UPDATE batch SET name = CONCAT(name, 'x') WHERE id = " + id));
    }

    static void deadlock(Connection a, Connection b) {
        check("one of two that wait for each other gets error 1213", () -> {
            sql(a, "INSERT INTO batch VALUES (11, 'a'), (12, 'b')");
            a.setAutoCommit(false);
            b.setAutoCommit(false);
            half(a, 11);
            half(b, 12);
            ExecutorService threads = Executors.newFixedThreadPool(2);
            List<Integer> ends = new ArrayList<>();
            List<Callable<Integer>> both = List.of(() -> end(a, half(a, 12)), () -> end(b, half(b, 11)));
            for (Future<Integer> end : threads.invokeAll(both)) ends.add(end.get());
            threads.shutdown();
            Collections.sort(ends);
            same(ends, List.of(0, 1213));
            a.setAutoCommit(true);
            b.setAutoCommit(true);
        });
    }

    static int end(Connection c, int code) throws SQLException {
        if (code == 0) c.commit(); else c.rollback();
        return code;
    }

    static void reading(Connection c) {
        check("rows as a stream", () -> {
            try (Statement s = c.createStatement()) {
                s.setFetchSize(100);
                ResultSet r = s.executeQuery("SELECT id FROM purchase ORDER BY id");
                long sum = 0;
                while (r.next()) sum += r.getLong(1);
                same(sum, 200010000L);
            }
        });
        check("a result set that changes rows", () -> {
            try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
                ResultSet r = s.executeQuery("SELECT id, name FROM batch WHERE id = 1");
                r.next();
                r.updateString("name", "by result set");
                r.updateRow();
            }
            same(one(c, "SELECT name FROM batch WHERE id = 1"), "by result set");
        });
    }

    static void metadata(Connection c) {
        check("metadata: keys, foreign keys, transactions", () -> {
            DatabaseMetaData m = c.getMetaData();
            same(m.supportsTransactions(), true);
            ResultSet r = m.getImportedKeys(c.getCatalog(), null, "purchase");
            same(r.next(), true);
            same(r.getString("PKTABLE_NAME") + " " + r.getShort("DELETE_RULE"), "customer " + DatabaseMetaData.importedKeyCascade);
            r = m.getPrimaryKeys(c.getCatalog(), null, "reading");
            int columns = 0;
            while (r.next()) columns++;
            same(columns, 2);
            r = m.getIndexInfo(c.getCatalog(), null, "customer", true, false);
            Set<String> names = new TreeSet<>();
            while (r.next()) names.add(r.getString("INDEX_NAME"));
            same(names.toString(), "[PRIMARY, name]");
        });
    }
}
