/** A text with the ids of today, where it has ids that began with a chapter's number. */
export function current(text, course, numbered) {
  const ids = text.replace(/(^|[^\w-])(\d\d)-([a-z]+)(?![\w-])/g, (old, before, number, part) => {
    const id = `${numbered[Number(number)]}-${part}`;
    return course.includes(id) ? before + id : old;
  });
  return ids.replace(/"\d\d_([a-z_]+ cell-)/g, '"$1');
}
