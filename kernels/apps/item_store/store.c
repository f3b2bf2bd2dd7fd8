#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <postgresql/libpq-fe.h>

#include "items.h"
#include "store.h"

#define CONNECTIONS_MAX 1024
#define STATEMENT       "insert_item"
#define DISK_FULL       "53100" /* SQLSTATE */

/* idle[0..idles) are connections that no thread uses; the last that came back is taken first. */
static PGconn *connection[CONNECTIONS_MAX], *idle[CONNECTIONS_MAX];
static unsigned connections, idles;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came_back = PTHREAD_COND_INITIALIZER;

/* Of the first insert that failed, under the lock. */
static char complaint[STORE_WHY];
static bool disk_full;

/* The first line of what libpq says. */
static int trouble(char why[STORE_WHY], const char *message)
{
    snprintf(why, STORE_WHY, "%.*s", (int)strcspn(message, "\n"), message);
    return -1;
}

static int command(PGconn *c, const char *text, char why[STORE_WHY])
{
    PGresult *result = PQexec(c, text);
    bool well = PQresultStatus(result) == PGRES_COMMAND_OK;

    PQclear(result);
    return well ? 0 : trouble(why, PQerrorMessage(c));
}

static int connection_open(PGconn **c, const char *folder, char why[STORE_WHY])
{
    /* All that the environment could say otherwise. */
    static const char *const names[] = {"host",    "port",    "user",       "dbname",
                                        "options", "sslmode", "gssencmode", NULL};
    const char *const values[] = {folder, "5432", "ak", "postgres", " ", "disable", "disable", NULL};

    *c = PQconnectdbParams(names, values, 0);
    return PQstatus(*c) == CONNECTION_OK ? 0 : trouble(why, PQerrorMessage(*c));
}

static int statement_prepare(PGconn *c, char why[STORE_WHY])
{
    PGresult *result = PQprepare(c, STATEMENT,
                                 "INSERT INTO " ITEM_TABLE " (" ITEM_KEY ", item) VALUES ($1, $2) "
                                 "ON CONFLICT (" ITEM_KEY ") DO NOTHING",
                                 2, NULL);
    bool well = PQresultStatus(result) == PGRES_COMMAND_OK;

    PQclear(result);
    return well ? 0 : trouble(why, PQerrorMessage(c));
}

int store_open(const char *folder, unsigned wanted, char why[STORE_WHY])
{
    for (connections = idles = 0; connections < wanted && connections < CONNECTIONS_MAX;) {
        PGconn **c = &connection[connections++];
        if (connection_open(c, folder, why) != 0)
            return -1;
        if (connections == 1 &&
            command(*c, "CREATE TABLE " ITEM_TABLE " (" ITEM_KEY " text PRIMARY KEY, item jsonb NOT NULL)",
                    why) != 0)
            return -1;
        if (statement_prepare(*c, why) != 0)
            return -1;
        idle[idles++] = *c;
    }
    return 0;
}

static PGconn *connection_take(void)
{
    pthread_mutex_lock(&lock);
    while (idles == 0)
        pthread_cond_wait(&came_back, &lock);
    PGconn *c = idle[--idles];
    pthread_mutex_unlock(&lock);
    return c;
}

static void connection_give(PGconn *c)
{
    pthread_mutex_lock(&lock);
    idle[idles++] = c;
    pthread_mutex_unlock(&lock);
    pthread_cond_signal(&came_back);
}

static void complain(PGconn *c, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

    pthread_mutex_lock(&lock);
    if (complaint[0] == '\0') {
        trouble(complaint, PQerrorMessage(c));
        disk_full = state != NULL && strcmp(state, DISK_FULL) == 0;
    }
    pthread_mutex_unlock(&lock);
}

enum stored store_insert(const char *key, const char *item)
{
    const char *const values[] = {key, item};
    PGconn *c = connection_take();
    PGresult *result = PQexecPrepared(c, STATEMENT, 2, values, NULL, NULL, 0);
    enum stored stored = STORE_FAILED;

    if (PQresultStatus(result) == PGRES_COMMAND_OK)
        stored = strcmp(PQcmdTuples(result), "1") == 0 ? STORE_INSERTED : STORE_EXISTS;
    else
        complain(c, result);
    PQclear(result);
    connection_give(c);
    return stored;
}

const char *store_complaint(void)
{
    return complaint;
}

bool store_disk_full(void)
{
    return disk_full;
}

int store_version(void)
{
    return connections > 0 ? PQserverVersion(connection[0]) : 0;
}

void store_close(void)
{
    while (connections > 0)
        PQfinish(connection[--connections]);
    idles = 0;
}
