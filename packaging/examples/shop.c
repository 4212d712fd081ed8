/*
  A small database without a server: rows with a number as their key, written in one transaction, read one by one and
  in order, and found again after the database was closed and opened.

  cc shop.c -o shop $(pkg-config --cflags --libs pandodb) && ./shop /tmp/shop
*/
#include <pando.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static PandoBytes bytes(const void *data, size_t length)
{
  PandoBytes view;
  view.data = data;
  view.len = length;
  return view;
}

static PandoBytes text(const char *string)
{
  return bytes(string, strlen(string));
}

static void check(PandoStatus status, const char *what)
{
  PandoBytes reason;
  if (status == PANDO_STATUS_OK)
    return;
  reason = pando_error_text();
  fprintf(stderr, "%s: %.*s (status %d)\n", what, (int) reason.len, (const char *) reason.data, (int) status);
  exit(1);
}

/* Keys are ordered as their bytes are: the highest byte first. */
static PandoBytes key_of(uint64_t number, uint8_t room[8])
{
  int i;
  for (i = 0; i < 8; i++)
    room[i] = (uint8_t) (number >> (56 - 8 * i));
  return bytes(room, 8);
}

static uint64_t number_of(const uint8_t *key)
{
  uint64_t number = 0;
  int i;
  for (i = 0; i < 8; i++)
    number = number << 8 | key[i];
  return number;
}

static struct PandoDb *open_database(const char *directory)
{
  struct PandoDb *db = NULL;
  char engine[4096];
  PandoOptions options;
  memset(&options, 0, sizeof(options));
  snprintf(engine, sizeof(engine), "%s/.pando", directory);
  options.base_dir = text(directory);
  options.engine_dir = text(engine);
  options.cache_bytes = 64 << 20;
  options.write_set_bytes = 16 << 20;
  options.load_memory_bytes = 32 << 20;
  options.flush_mode = 1;
  options.background_threads = 2;
  options.checkpoint_period_s = 60;
  options.lock_wait_s = 50;
  options.log_file_bytes = 16 << 20;
  check(pando_db_open(&options, &db), "open");
  return db;
}

static void write_rows(struct PandoDb *db)
{
  static const char *const goods[] = {"apples", "bread", "coffee", "dates"};
  struct PandoTable *table = NULL;
  struct PandoTxn *txn = pando_txn_new(db);
  uint64_t i;
  check(pando_table_open(db, text("./shop/goods"), &table), "open table");
  pando_txn_begin_statement(txn, 50000); /* milliseconds for each row lock */
  for (i = 0; i < 4; i++)
  {
    uint8_t room[8];
    PandoEntry row;
    memset(&row, 0, sizeof(row));
    row.key = key_of((i + 1) * 1000, room);
    row.value = text(goods[i]);
    row.unique = 1;
    check(pando_txn_insert_row(txn, table, &row, 1, NULL, 0, PANDO_ON_DUPLICATE_SHARE), "insert");
  }
  check(pando_txn_commit(txn), "commit");
  pando_txn_free(txn);
  pando_table_close(table);
}

static void read_rows(struct PandoDb *db)
{
  struct PandoTable *table = NULL;
  struct PandoTxn *txn = pando_txn_new(db);
  struct PandoBuffer *buffer = pando_buffer_new();
  struct PandoCursor *cursor;
  PandoFetch fetch;
  PandoBatch batch;
  PandoBytes value;
  PandoStatus status;
  uint8_t room[8];

  check(pando_table_open(db, text("./shop/goods"), &table), "open table");
  pando_txn_begin_statement(txn, 50000); /* milliseconds for each row lock */
  pando_txn_open_snapshot(txn);

  check(pando_txn_get(txn, table, 0, key_of(3000, room), PANDO_READ_SNAPSHOT, PANDO_WAIT_DEFAULT, buffer), "get");
  value = pando_buffer_bytes(buffer);
  printf("3000 is %.*s\n", (int) value.len, (const char *) value.data);

  cursor = pando_cursor_new(txn, table, 0);
  memset(&fetch, 0, sizeof(fetch));
  fetch.start = PANDO_MOVE_AT_OR_AFTER;
  fetch.key = key_of(2000, room);
  fetch.read = PANDO_READ_SNAPSHOT;
  fetch.wait_s = PANDO_WAIT_DEFAULT;
  fetch.rows_max = 100;
  fetch.bytes_max = 1 << 16;
  while ((status = pando_cursor_fetch(cursor, txn, &fetch, &batch)) == PANDO_STATUS_OK)
  {
    const uint8_t *at = batch.rows.data;
    uint32_t i;
    for (i = 0; i < batch.count; i++)
    {
      uint32_t lengths[2];
      memcpy(lengths, at, sizeof(lengths));
      at += sizeof(lengths);
      printf("%" PRIu64 " %.*s\n", number_of(at), (int) lengths[1], (const char *) at + lengths[0]);
      at += lengths[0] + lengths[1];
    }
    if (batch.ended)
      break;
    fetch.start = PANDO_MOVE_NEXT;
  }
  if (status != PANDO_STATUS_NOT_FOUND)
    check(status, "fetch");

  pando_cursor_free(cursor);
  pando_buffer_free(buffer);
  pando_txn_rollback(txn);
  pando_txn_free(txn);
  pando_table_close(table);
}

int main(int argc, char **argv)
{
  struct PandoDb *db;
  PandoTableSpec spec;
  char shop[4096];
  if (argc != 2)
  {
    fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  snprintf(shop, sizeof(shop), "%s/shop", argv[1]);
  mkdir(argv[1], 0700);
  mkdir(shop, 0700);

  db = open_database(argv[1]);
  memset(&spec, 0, sizeof(spec));
  spec.path = text("./shop/goods");
  spec.compression = PANDO_COMPRESSION_LZ4;
  check(pando_table_create(db, &spec), "create table");
  write_rows(db);
  check(pando_db_close(db), "close");

  db = open_database(argv[1]);
  read_rows(db);
  check(pando_db_close(db), "close");
  return 0;
}
