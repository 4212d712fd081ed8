"""What is refused, with what words, and that nothing is changed by it."""

import shutil

# Fetches the log and loses its last byte.
_CUTTING = """#!/bin/sh
{real} "$@" || exit 1
for argument; do
    case $argument in --result-file=*) directory=${{argument#*=}} ;; esac
    file=$argument
done
truncate -s -1 "$directory$file"
"""


def _refused(scene, checks, words, text, *arguments, **more):
    status, said = scene.move(*arguments, **more)
    checks.check(status == 1 and words in said, text, said)


def refusals(scene, checks, arguments):
    """One after the other; the table stays where it is. The longer ones only with --all."""
    source, = scene.owners()
    target = "shard3" if source == "shard2" else "shard2"
    _refused(scene, checks, "no partition of d.money on", "a partition that is not on the source", target, source)
    _refused(scene, checks, "remembers no move", "nothing to resume", source, target, "--resume")
    _refused(scene, checks, "remembers no move", "nothing to undo", source, target, "--abort")
    _tables(scene, checks, source, target)
    _account(scene, checks, source, target)
    _doubts(scene, checks, source, target)
    _cut_off(scene, checks, source, target)
    if arguments.all:
        _long_transaction(scene, checks, source, target)
        _changes(scene, checks, source, target)
        _another_source(scene, checks, source, target)
        _difference(scene, checks, source, target)
    checks.check(scene.owners() == [source] and not scene.left_over() and not scene.load.problems(), "nothing was changed by it",
                 [scene.owners(), scene.left_over(), scene.load.problems()])


def _tables(scene, checks, source, target):
    engine = scene.cluster.engine
    for definition, words in (("a INT", "no primary key"), ("a INT PRIMARY KEY, f FLOAT", "FLOAT")):
        scene.shards[source].run(f"CREATE TABLE d.odd ({definition}) ENGINE={engine}")
        scene.fronts_query(f"CREATE TABLE odd ({definition}) ENGINE=SPIDER COMMENT='wrapper \"mysql\", srv \"{source}\", table \"odd\"'")
        _refused(scene, checks, words, f"a table with {definition}", source, target, part="", table="odd")
        scene.fronts_query("DROP TABLE odd")
        scene.shards[source].run("DROP TABLE d.odd")


def _account(scene, checks, source, target):
    scene.shards[target].run("RENAME USER spider@'127.%' TO spider_away@'127.%'", "FLUSH PRIVILEGES")
    scene.fronts_query("FLUSH TABLES")
    # By name: a connection that ends meanwhile has no number.
    scene.shards[target].run("KILL USER spider")
    _refused(scene, checks, "cannot read", "a front that cannot reach the target", source, target)
    scene.shards[target].run("RENAME USER spider_away@'127.%' TO spider@'127.%'")
    status, text = scene.move(source, target, "--abort")
    checks.check(status == 0, "and undone", text)


def _doubts(scene, checks, source, target):
    """An XA transaction without a session has changed the table: before the copy, and after it."""
    prepare = ["XA START 'x'", "UPDATE d.money SET v = v + 1 WHERE id = (SELECT MIN(id) FROM d.money)", "XA END 'x'", "XA PREPARE 'x'"]
    again = ["XA START 'y'", "UPDATE d.money SET v = v - 1 WHERE id = (SELECT MIN(id) FROM d.money)", "XA END 'y'", "XA PREPARE 'y'"]
    scene.shards[source].run(*prepare)
    _refused(scene, checks, "X'78'", "a prepared transaction that has changed the table, before the copy", source, target, "--doubt-seconds", "1")
    scene.shards[source].run("XA COMMIT 'x'")
    # Prepared after the copy: the switch waits for its end, and the target has it.
    command = f"mariadb --no-defaults -uroot -S {scene.shards[source].server.socket} -e \"{'; '.join(again)}\""
    _refused(scene, checks, "X'79'", "one that is prepared after the copy", source, target, "--resume", "--doubt-seconds", "1", step="copied", command=command)
    _refused(scene, checks, "X'79'", "and in the next run", source, target, "--resume", "--doubt-seconds", "1")
    scene.shards[source].run("XA COMMIT 'y'")
    status, text = scene.move(source, target, "--resume")
    checks.check(status == 0 and scene.owners() == [target] and not scene.load.problems(), "committed, it is on the target", [text, scene.load.problems()])
    status, text = scene.move(target, source)
    checks.check(status == 0, "and back", text)


def _changes(scene, checks, source, target):
    """Another definition, and a statement in the log."""
    socket = scene.shards[source].server.socket
    for statement, words in (("ALTER TABLE d.money ADD COLUMN more INT; ALTER TABLE d.money DROP COLUMN more", "by a statement"),
                             ("SET SESSION binlog_format=STATEMENT; UPDATE d.money SET v = v WHERE id < 0", "by a statement")):
        _refused(scene, checks, words, f"while it moves: {statement}", source, target, step="copied",
                 command=f"mariadb --no-defaults -uroot -S {socket} -e '{statement}'")
        status, text = scene.move(source, target, "--abort")
        checks.check(status == 0, "and undone", text)


def _another_source(scene, checks, source, target):
    """A failover of the source: another server, another binary log."""
    member = scene.shards[source]
    number = member.value("SELECT @@server_id")
    scene.move(source, target, step="copied", command="kill -9 $PPID")
    member.run("SET GLOBAL server_id = 77")
    status, text = scene.move(source, target, "--resume")
    checks.check(status == 0 and "another server than before" in text and not scene.load.problems(), "a source that is another server: the copy begins anew", text)
    member.run(f"SET GLOBAL server_id = {number}")
    status, text = scene.move(target, source)
    checks.check(status == 0, "and back", text)


def _difference(scene, checks, source, target):
    """A row that only the target has: found at the end, and the old rows stay."""
    command = f"mariadb --no-defaults -uroot -S {scene.shards[target].server.socket} -e 'INSERT INTO d.money__incoming (id, v) VALUES (-1, 0)'"
    _refused(scene, checks, "are not those of", "a row too many on the target", source, target, step="fenced", command=command)
    _refused(scene, checks, "are not those of", "and in the next run", source, target, "--resume")
    status, text = scene.move(source, target, "--resume", "--keep-old")
    checks.check(status == 0 and "stay on" in text, "the move ends with --keep-old", text)
    scene.shards[target].run("DELETE FROM d.money WHERE id = -1")
    scene.shards[source].run("DROP TABLE d.money__moved")
    status, text = scene.move(target, source)
    checks.check(status == 0, "and back", text)


def _cut_off(scene, checks, source, target):
    """A binary log of which the end is missing is not taken for a whole one."""
    directory = scene.cluster.dir / "cutting"
    directory.mkdir()
    program = directory / "mariadb-binlog"
    program.write_text(_CUTTING.format(real=shutil.which("mariadb-binlog")))
    program.chmod(0o755)
    scene.load.start()
    _refused(scene, checks, "the binary log was read to", "a binary log that was not fetched to its end", source, target, path=directory)
    scene.load.stop()
    status, text = scene.move(source, target, "--abort")
    checks.check(status == 0, "and undone", text)


def _long_transaction(scene, checks, source, target):
    """Neither copy nor switch waits for one, and does not let others wait for it."""
    words = "somebody uses the table"
    with scene.cluster.front.connect("d") as session:
        begin = ("START TRANSACTION", "UPDATE money SET note = 'long' WHERE id < 10")
        for sql in begin:
            session.query(sql)
        _refused(scene, checks, words, "a copy while a client has an open transaction", source, target, "--doubt-seconds", "0.1")
        session.query("COMMIT")
        scene.move(source, target, "--resume", step="copied", command="kill -9 $PPID")
        for sql in begin:
            session.query(sql)
        _refused(scene, checks, words, "a switch while a client has one", source, target, "--resume", "--doubt-seconds", "0.1")
        session.query("COMMIT")
    status, text = scene.move(source, target, "--resume")
    checks.check(status == 0, "when it has ended, the move is resumed", text)
    status, text = scene.move(target, source)
    checks.check(status == 0, "and back", text)
