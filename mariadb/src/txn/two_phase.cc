/* Who calls what, and when.

   With the binary log, or with another engine in the same transaction, the server is the coordinator:

     prepare            in the connection's thread. The engine's log has everything but the decision, synced
                        as pando_flush_log_at_trx_commit says
                        (in a replica it waits here for earlier transactions where the server does not keep
                        their order: wait_for_turn in replication.h)
     (the server)       writes a group of transactions to the binary log (or to its own tc.log) and syncs it:
                        now they are committed
     commit_ordered     in the thread that leads the group, under LOCK_commit_ordered, for one transaction
                        after the other, in the order of the binary log. A few bytes go to the engine's log,
                        not synced
     commit             in the connection's thread, once it has been woken

   The leader orders its own commit first and finishes it last, after all others have been ordered.
   So nothing that an ordered transaction keeps from others until its commit may be wanted by another's
   commit_ordered: crates/tree/src/deferred.rs says why nothing is. It may keep others' commits from being
   visible, and these wait in commit, where no mutex of the server is held that the ordered one needs.

   After a crash the server asks what is prepared (recover), and commits what its log has and rolls back the
   rest (commit_by_xid, rollback_by_xid). Its log may forget a transaction only when the engine has the commit
   on disk, which commit_checkpoint_request asks for.

   Without the binary log the server (10.11) writes tc.log, but after a crash rolls back whatever it finds
   prepared, also what tc.log has (xarecover_handlerton looks at the list of commits only for the binary log).
   So then a commit waits until the engine's own log has it. InnoDB's does not: transactions over two
   engines are as safe as the server makes them only with the binary log.

   Of XA PREPARE the user is the coordinator: the server calls prepare alone, later commit without
   commit_ordered, or commit_by_xid for a transaction whose connection has gone. It may do that before it has
   told the engine that the connection is gone (trans_xa_detach), and never tells when a connection is reset: so
   what the user has prepared is found by its name at once, and its connection takes it back (pando_txn_leave). */
#include "two_phase.h"
#include "transaction.h"

namespace pando {

void encode_xid(const XID &xid, Bytes *name)
{
  name->clear();
  for (uint i= 0; i < 8; i++)
    name->append_byte(uchar(uint64_t(xid.formatID) >> (8 * i)));
  name->append_byte(uchar(xid.gtrid_length));
  name->append_byte(uchar(xid.bqual_length));
  name->append(xid.data, size_t(xid.gtrid_length + xid.bqual_length));
}

/* What encode_xid made; anything else was not prepared through this plugin, and is left alone. */
static bool decode_xid(PandoBytes bytes, XID *xid)
{
  if (bytes.len < 10 || bytes.len != size_t(10 + bytes.data[8] + bytes.data[9]) || bytes.len > 10 + XIDDATASIZE)
    return false;
  uint64_t format= 0;
  for (uint i= 0; i < 8; i++)
    format|= uint64_t(bytes.data[i]) << (8 * i);
  xid->set(long(format), reinterpret_cast<const char *>(bytes.data + 10), long(bytes.data[8]),
           reinterpret_cast<const char *>(bytes.data + 10 + bytes.data[8]), long(bytes.data[9]));
  return true;
}

static int prepare(THD *thd, bool all)
{
  Transaction *transaction= Transaction::if_any(thd);
  return transaction ? transaction->prepare(all) : 0;
}

static void commit_ordered(THD *thd, bool)
{
  if (Transaction *transaction= Transaction::if_any(thd))
    pando_txn_commit_ordered(transaction->txn(), opt_bin_log);
}

struct Xid_list
{
  XID *next;
  uint count;
};

static void add_xid(void *context, PandoBytes bytes)
{
  Xid_list *list= static_cast<Xid_list *>(context);
  if (decode_xid(bytes, list->next))
  {
    list->next++;
    list->count++;
  }
}

static int recover(XID *xids, uint max)
{
  Xid_list list= {xids, 0};
  pando_db_report_prepared(db, max, add_xid, &list);
  return int(list.count);
}

/* What the X/Open standard calls the answers. The server keeps of them only that the connection has an error:
   then XA COMMIT can be tried again. */
enum Answer : int
{
  DONE= 0,
  NO_SUCH_TRANSACTION= -4,
  NOT_NOW= -7
};

static int answer_of(PandoStatus status)
{
  if (status == PANDO_STATUS_NOT_FOUND)
    return NO_SUCH_TRANSACTION;
  if (!error_of(status, current_thd))
    return DONE;
  if (current_thd)
    my_error(ER_XAER_RMERR, MYF(0));
  return NOT_NOW;
}

static int commit_by_xid(XID *xid)
{
  Bytes name;
  encode_xid(*xid, &name);
  return answer_of(pando_db_commit_by_xid(db, name.view()));
}

static int rollback_by_xid(XID *xid)
{
  Bytes name;
  encode_xid(*xid, &name);
  return answer_of(pando_db_rollback_by_xid(db, name.view()));
}

/* Every commit so far has to be on disk before the server hears of it again. If the log has failed it never
   does, and keeps its own. */
static void commit_checkpoint_request(void *cookie)
{
  if (!error_of(pando_db_flush_logs(db), nullptr))
    commit_checkpoint_notify_ha(cookie);
}

void set_two_phase_functions(handlerton *engine)
{
  engine->prepare= engine_function<prepare>;
  engine->commit_ordered= engine_function<commit_ordered>;
  engine->recover= engine_function<recover>;
  engine->commit_by_xid= engine_function<commit_by_xid>;
  engine->rollback_by_xid= engine_function<rollback_by_xid>;
  engine->commit_checkpoint_request= commit_checkpoint_request;
}

} // namespace pando
