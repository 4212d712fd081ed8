/* The server's headers, in the order they need. */
#ifndef PANDO_SERVER_H
#define PANDO_SERVER_H

#define MYSQL_SERVER 1
#include <my_global.h>
#include "sql_priv.h"
#include "sql_class.h"
#include "sql_plugin.h"
#include "sql_table.h"
#include "sql_partition.h"
#include "handler.h"
#include "table.h"
#include "field.h"
#include "key.h"
#include "log.h"
#include "set_var.h"

#endif
