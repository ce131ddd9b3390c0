/** A text with the ids of today, where it has ids that began with a number or have moved. */
export function current(text, course, numbered, renamed) {
  const today = (id) => renamed[id] ?? id;
  const ids = text.replace(/(^|[^\w-])(\d\d)-([a-z]+)(?![\w-])/g, (old, before, number, part) => {
    const id = today(`${numbered[Number(number)]}-${part}`);
    return course.includes(id) ? before + id : old;
  });
  const moved = ids.replace(/(^|[^\w-])([a-z_]+-[a-z]+)(?![\w-])/g, (_, before, id) => before + today(id));
  return moved.replace(/"\d\d_([a-z_]+ cell-)/g, '"$1');
}
