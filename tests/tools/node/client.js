// What Node's two clients do with tables of one engine: `node client.js SOCKET DATABASE ENGINE`. Prints a line for each check.
import { createHash } from "node:crypto";
import mariadb from "mariadb";
import mysql from "mysql2/promise";

const [socketPath, database, engine] = process.argv.slice(2);
let failed = 0;

async function check(what, body) {
  try {
    await body();
    console.log(`ok      ${engine}: ${what}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${engine}: ${what}: ${error.stack}`);
  }
}

function same(found, wanted) {
  const [a, b] = [found, wanted].map((v) => JSON.stringify(v, (_, x) => (typeof x === "bigint" ? x.toString() : x)));
  if (a !== b) throw new Error(`${a} is not ${b}`);
}

async function code(promise) {
  try {
    await promise;
  } catch (error) {
    return error.errno;
  }
  return 0;
}

// `query` gives rows, `execute` is a prepared statement, whose answer to a change has affectedRows and insertId.
async function clientTests(name, pool, query, execute, close) {
  const table = `${name}_rows`;
  const connection = await pool.getConnection();
  await query(connection, `CREATE TABLE ${table} (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50) UNIQUE,
    amount DECIMAL(20,6), at DATETIME(6), big BIGINT, data LONGBLOB, doc JSON) ENGINE=${engine}`);
  const bytes = Buffer.alloc(300000, "pando \u{1F333}");

  await check(`${name}: insertId and affectedRows of a prepared INSERT`, async () => {
    const result = await execute(connection, `INSERT INTO ${table} (name, amount, at, big, data, doc) VALUES (?, ?, ?, ?, ?, ?)`, [
      "Jürgen \u{1F333}", "12345678901234.567891", "2026-02-03 04:05:06.789012", "-9223372036854775808", bytes, '{"n":[1,2]}']);
    same([Number(result.insertId), result.affectedRows], [1, 1]);
  });
  await check(`${name}: the same values come back, by text and by prepared statements`, async () => {
    for (const ask of [query, execute]) {
      const [row] = await ask(connection, `SELECT name, CAST(amount AS CHAR) amount, CAST(at AS CHAR) at, CAST(big AS CHAR) big, data,
        JSON_VALUE(doc, '$.n[1]') n FROM ${table} WHERE id = ?`, [1]);
      same([row.name, row.amount, row.at, row.big, row.n, createHash("md5").update(row.data).digest("hex")],
        ["Jürgen \u{1F333}", "12345678901234.567891", "2026-02-03 04:05:06.789012", "-9223372036854775808", "2",
          createHash("md5").update(bytes).digest("hex")]);
    }
  });
  await check(`${name}: rollback, commit, savepoint`, async () => {
    await connection.beginTransaction();
    await query(connection, `INSERT INTO ${table} (name) VALUES ('gone')`);
    await connection.rollback();
    await connection.beginTransaction();
    await query(connection, `INSERT INTO ${table} (name) VALUES ('kept')`);
    await query(connection, "SAVEPOINT here");
    await query(connection, `INSERT INTO ${table} (name) VALUES ('gone')`);
    await query(connection, "ROLLBACK TO SAVEPOINT here");
    await connection.commit();
    same((await query(connection, `SELECT name FROM ${table} WHERE id > 1`)).map((row) => row.name), ["kept"]);
  });
  await check(`${name}: the number of the error of a duplicate key`, async () => {
    same(await code(query(connection, `INSERT INTO ${table} (name) VALUES ('kept')`)), 1062);
  });
  await check(`${name}: one of two that wait for each other gets error 1213, its try again passes`, async () => {
    const other = await pool.getConnection();
    await query(connection, `INSERT INTO ${table} (id, name) VALUES (101, 'a'), (102, 'b')`);
    const half = (c, id) => query(c, `UPDATE ${table} SET big = COALESCE(big, 0) + 1 WHERE id = ${id}`);
    await connection.beginTransaction();
    await other.beginTransaction();
    await half(connection, 101);
    await half(other, 102);
    const ends = await Promise.all([[connection, 102], [other, 101]].map(async ([c, id]) => {
      const number = await code(half(c, id));
      await (number ? c.rollback() : c.commit());
      return number;
    }));
    same(ends.sort(), [0, 1213]);
    await half(other, 101);
    await query(connection, `DELETE FROM ${table} WHERE id > 100`);
    other.release();
  });
  await check(`${name}: 40 inserts at once over a pool`, async () => {
    const from = Array.from({ length: 40 }, (_, i) => i);
    await Promise.all(from.map(async (i) => {
      const one = await pool.getConnection();
      await execute(one, `INSERT INTO ${table} (name, big) VALUES (?, ?)`, [`pool ${i}`, i]);
      one.release();
    }));
    const [row] = await query(connection, `SELECT CAST(COUNT(*) AS CHAR) n, CAST(SUM(big) AS CHAR) s FROM ${table} WHERE name LIKE 'pool%'`);
    same([row.n, row.s], ["40", "780"]);
  });
  await check(`${name}: rows as a stream`, async () => {
    let rows = 0;
    for await (const row of stream[name](connection, "SELECT id, at FROM purchase ORDER BY id")) rows += Number(row.id) > 0 ? 1 : 0;
    same(rows, 20000);
  });
  connection.release();
  await close();
}

const stream = {
  mysql2: (c, sql) => c.connection.query(sql).stream(),
  mariadb: (c, sql) => c.queryStream(sql),
};

const settings = { socketPath, user: "root", database, connectionLimit: 8 };
const two = mysql.createPool(settings);
await clientTests("mysql2", two, async (c, sql, values) => (await c.query(sql, values))[0],
  async (c, sql, values) => (await c.execute(sql, values))[0], () => two.end());

const one = mariadb.createPool(settings);
await clientTests("mariadb", one, (c, sql, values) => c.query(sql, values), (c, sql, values) => c.execute(sql, values), async () => {
  const connection = await one.getConnection();
  await check("mariadb: a batch of 2,000 rows", async () => {
    await connection.query(`CREATE TABLE batch (id INT PRIMARY KEY, name VARCHAR(20)) ENGINE=${engine}`);
    await connection.batch("INSERT INTO batch VALUES (?, ?)", Array.from({ length: 2000 }, (_, i) => [i, `name ${i}`]));
    same(Number((await connection.query("SELECT COUNT(DISTINCT name) n FROM batch"))[0].n), 2000);
  });
  connection.release();
  await one.end();
});
process.exit(failed ? 1 : 0);
