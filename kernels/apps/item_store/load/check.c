#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>
#include <postgresql/libpq-fe.h>

#include "check.h"
#include "../items.h"

/* Rows of one answer: read in parts, they take little memory. */
#define FETCH "FETCH 2000 FROM rows"

static int row_check(const char *key, const char *row, uint64_t seed, uint64_t items, uint64_t warm)
{
    char text[ITEM_BODY_MAX];
    uint64_t n;

    if (!item_number(key, seed, &n) || (n < ITEM_WARM ? n >= items : n - ITEM_WARM >= warm)) {
        fprintf(stderr, "ak-item-load: the row %s was never sent\n", key);
        return 1;
    }
    json_t *sent = json_loadb(text, item_json(text, seed, n), 0, NULL), *found = json_loads(row, 0, NULL);
    int rc = json_equal(sent, found) ? 0 : 1;
    json_decref(sent);
    json_decref(found);
    if (rc != 0)
        fprintf(stderr, "ak-item-load: the row %s holds %.100s, which is not the item that was sent\n", key,
                row);
    return rc;
}

/* Rows of one answer; their number, or -1. */
static int part_check(const PGresult *part, uint64_t seed, uint64_t items, uint64_t warm)
{
    for (int i = 0; i < PQntuples(part); i++)
        if (row_check(PQgetvalue(part, i, 0), PQgetvalue(part, i, 1), seed, items, warm) != 0)
            return -1;
    return PQntuples(part);
}

static int begin(PGconn *c)
{
    PGresult *result = PQexec(c, "BEGIN; DECLARE rows CURSOR FOR SELECT " ITEM_KEY ", item FROM " ITEM_TABLE);
    int rc = PQresultStatus(result) == PGRES_COMMAND_OK ? 0 : 3;
    PQclear(result);
    return rc;
}

/* All rows; keys are unique there, so that as many as were sent are those. */
static int rows_check(PGconn *c, uint64_t seed, uint64_t items, uint64_t warm)
{
    uint64_t rows = 0;
    int count = 1, rc = begin(c);

    if (rc != 0)
        return rc;
    while (count > 0) {
        PGresult *part = PQexec(c, FETCH);
        if (PQresultStatus(part) != PGRES_TUPLES_OK) {
            PQclear(part);
            return 3;
        }
        count = part_check(part, seed, items, warm);
        rows += count > 0 ? (uint64_t)count : 0;
        PQclear(part);
    }
    if (count < 0)
        return 1;
    printf("%" PRIu64 "\n", rows);
    if (rows == items + warm)
        return 0;
    fprintf(stderr, "ak-item-load: %" PRIu64 " rows in the table, %" PRIu64 " were accepted\n", rows,
            items + warm);
    return 1;
}

int check_rows(const char *folder, uint64_t seed, uint64_t items, uint64_t warm)
{
    static const char *const names[] = {"host", "port", "user", "dbname", "sslmode", "gssencmode", NULL};
    const char *const values[] = {folder, "5432", "ak", "postgres", "disable", "disable", NULL};
    PGconn *c = PQconnectdbParams(names, values, 0);
    int rc = PQstatus(c) == CONNECTION_OK ? rows_check(c, seed, items, warm) : 3;

    if (rc == 3) {
        const char *said = PQerrorMessage(c);
        fprintf(stderr, "ak-item-load: %.*s\n", (int)strcspn(said, "\n"), said);
    }
    PQfinish(c);
    return rc;
}
