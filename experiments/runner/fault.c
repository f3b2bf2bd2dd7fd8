#include "fault.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool fault_set(struct fault *f, int code, const char *format, ...)
{
    if (f->code != AK_DONE)
        return false;
    va_list args;
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
    text_one_line(f->text);
    f->code = code;
    return false;
}

bool fault_at(struct fault *f, const char *file, unsigned line, const char *format, ...)
{
    if (f->code != AK_DONE)
        return false;
    char what[FAULT_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (line)
        snprintf(f->text, sizeof f->text, "%s:%u: %.*s", file, line, (int)sizeof what / 2, what);
    else
        snprintf(f->text, sizeof f->text, "%s: %.*s", file, (int)sizeof what / 2, what);
    text_one_line(f->text);
    f->code = AK_USAGE;
    return false;
}

int fault_print(const struct fault *f)
{
    if (f->code != AK_DONE)
        fprintf(stderr, "ak: %s\n", f->text);
    return f->code;
}
